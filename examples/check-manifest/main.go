// Command check-manifest says what is wrong with manifests before they reach a
// cluster.
//
//	check-manifest [-o defaulted] [-config FILE] [-feature-gates NAME,…] FILE…
//
// It decodes each document of Podvisor's kinds strictly, applies defaults and
// validates, as a cluster does, and prints one line for each fault. A cluster
// stops at the first value of a wrong type; here all are found:
//
//	file: kind/name: field: cause type: message
//
// A fault that no single field can mend has no field. Documents of other kinds
// are passed over with a note on standard error. The file - is standard input.
//
// What is right and the API server does not take yet is no fault either. A note
// on standard error says why, for each field, value and kind that is written and
// is not served:
//
//	file: kind/name: field: not served yet: reason
//
// With -o defaulted it prints the objects with defaults applied as YAML, and the
// faults on standard error. UUIDs, which a cluster derives from the object's UID
// or chooses, are derived from namespace and name here.
//
// The exit status is 1 if there is a fault, and 2 if a file cannot be read.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/validate"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, metav1.Now().Rfc3339Copy()))
}

// run is the program. It returns the exit status.
func run(args []string, in io.Reader, out, notes io.Writer, now metav1.Time) int {
	flags := flag.NewFlagSet("check-manifest", flag.ContinueOnError)
	flags.SetOutput(notes)
	output := flags.String("o", "", "what to print: the faults, or with defaulted the objects as YAML")
	config := flags.String("config", "", "a `file` with the KubeVirt object whose configuration applies")
	gates := flags.String("feature-gates", "", "the KubeVirt feature gates that are on, separated by commas")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if *output != "" && *output != "defaulted" || flags.NArg() == 0 {
		fmt.Fprintln(notes, "usage: check-manifest [-o defaulted] [-config FILE] [-feature-gates NAME,…] FILE…")
		return 2
	}
	c := &checker{in: in, out: out, faults: out, notes: notes, print: *output == "defaulted"}
	if c.print {
		c.faults = notes
	}
	if err := c.configure(*config, *gates, now); err != nil {
		fmt.Fprintln(notes, err)
		return 2
	}
	status := 0
	for _, name := range flags.Args() {
		if err := c.file(name); err != nil {
			fmt.Fprintln(notes, err)
			status = 2
		}
	}
	if status == 0 && c.count > 0 {
		return 1
	}
	return status
}

// configure takes over what a cluster decides and allows.
func (c *checker) configure(file, gates string, now metav1.Time) error {
	k := &vmi.KubeVirt{}
	if file != "" {
		var err error
		if k, err = c.cluster(file); err != nil {
			return err
		}
	}
	c.profile = defaults.Configured(&k.Spec.Configuration)
	c.limits = validate.Configured(&k.Spec.Configuration)
	c.profile.Now = metav1.NewTime(now.UTC().Truncate(time.Second))
	if gates != "" {
		var unknown []string
		if c.limits.Features, unknown = validate.FeatureGates(strings.FieldsFunc(gates, func(r rune) bool { return r == ',' || r == ' ' })...); len(unknown) > 0 {
			fmt.Fprintln(c.notes, "feature gates that switch nothing on here:", strings.Join(unknown, ", "))
		}
	}
	return nil
}

// cluster is the KubeVirt object of a file, which may have others beside it.
func (c *checker) cluster(file string) (*vmi.KubeVirt, error) {
	data, err := c.read(file)
	if err != nil {
		return nil, err
	}
	docs, err := documents(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	docs = slices.DeleteFunc(docs, func(d document) bool { return !d.ours() || d.Kind != vmi.KubeVirts.Kind })
	if len(docs) != 1 {
		return nil, fmt.Errorf("%s: must have one object of the kind KubeVirt, has %d", file, len(docs))
	}
	k := &vmi.KubeVirt{}
	faults, usable := decode(docs[0].data, k)
	if usable {
		faults = append(faults, listed(validate.KubeVirt(k))...)
	}
	c.unserved(file, docs[0])
	if len(faults) == 0 {
		return k, nil
	}
	lines := make([]string, len(faults))
	for i, f := range faults {
		lines[i] = f.line(file, docs[0])
	}
	return nil, errors.New(strings.Join(lines, "\n"))
}
