// Command check-manifest says what is wrong with manifests before they reach a
// cluster: see package vmi/manifest.
//
//	check-manifest [-o defaulted] [-config FILE] [-feature-gates NAME,…] FILE…
//
// On standard output it prints one line for each fault of all files. The file - is
// standard input.
//
//	file: kind/name: field: cause type: message
//
// A VM is judged with the instance type and the preference that it names, if they are in
// one of the files.
//
// A fault that no single field can correct has no field. Then, on standard error,
// one line for each field, value and kind that is right and not served yet, why,
// and at last how many there are of both. Lines that begin with "note:" say which
// objects are not checked.
//
//	file: kind/name: field: not served yet: reason
//
// With -o defaulted it prints the objects with defaults applied as YAML, and the
// faults on standard error.
//
// The exit status is 1 if there is a fault, and 2 if a file cannot be read.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/kinds"
	"github.com/podvisor/podvisor/vmi/manifest"
	"github.com/podvisor/podvisor/vmi/validate"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, time.Now()))
}

// run is the program. It returns the exit status.
func run(args []string, in io.Reader, out, notes io.Writer, now time.Time) int {
	flags := flag.NewFlagSet("check-manifest", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	output := flags.String("o", "", "what to print: the faults, or with defaulted the objects as YAML")
	config := flags.String("config", "", "a `file` with the KubeVirt object whose configuration applies")
	gates := flags.String("feature-gates", "", "the KubeVirt feature gates that are on, separated by commas")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(out, "usage: check-manifest [-o defaulted] [-config FILE] [-feature-gates NAME,…] FILE…")
		flags.SetOutput(out)
		flags.PrintDefaults()
		return 0
	case err == nil && *output != "" && *output != "defaulted":
		err = fmt.Errorf("-o %s: only defaulted is known", *output)
	case err == nil && flags.NArg() == 0:
		err = errors.New("no file is given")
	}
	if err != nil {
		fmt.Fprintf(notes, "check-manifest: %v: see check-manifest --help\n", err)
		return 2
	}
	p := printer{in: in, out: out, faults: out, notes: notes, print: *output == "defaulted"}
	if p.print {
		p.faults = notes
	}
	c, err := p.cluster(*config, *gates)
	if err != nil {
		fmt.Fprintln(notes, err)
		return 2
	}
	c.Defaults.Now = metav1.NewTime(now.UTC().Truncate(time.Second))
	status := 0
	files := p.files(flags.Args())
	for _, f := range files {
		if err := p.file(f, c); err != nil {
			fmt.Fprintln(notes, err)
			status = 2
		}
	}
	p.report()
	if status == 0 && len(p.found) > 0 {
		return 1
	}
	return status
}

// printer prints what is found in files.
type printer struct {
	in                 io.Reader
	out, faults, notes io.Writer
	// print says that objects are printed with defaults applied.
	print   bool
	printed bool
	// sizes are the instance types and the preferences of all files.
	sizes []vmi.Object
	// found and unserved are the lines of faults and of what is not served.
	found, unserved []string
}

// report prints the faults, and apart from them what is not served.
func (p *printer) report() {
	for _, line := range p.found {
		fmt.Fprintln(p.faults, line)
	}
	for _, line := range p.unserved {
		fmt.Fprintln(p.notes, line)
	}
	if n, m := len(p.found), len(p.unserved); n+m > 0 {
		fmt.Fprintf(p.notes, "faults: %d, not served yet: %d (the API server refuses them; docs/fields.md lists all)\n", n, m)
	}
}

// object keeps what was found in an object of the file.
func (p *printer) object(file string, o manifest.Object) {
	for _, n := range o.Notes {
		fmt.Fprintf(p.notes, "note: %s: %s: %s\n", file, o, n)
	}
	for _, f := range o.Unserved {
		p.unserved = append(p.unserved, fmt.Sprintf("%s: %s: %s", file, o, f))
	}
	for _, f := range o.Faults {
		p.found = append(p.found, fmt.Sprintf("%s: %s: %s", file, o, f))
	}
}

func (p *printer) read(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(p.in)
	}
	return os.ReadFile(name)
}

// cluster is the one that the manifests are checked for.
func (p *printer) cluster(file, gates string) (kinds.Cluster, error) {
	var c kinds.Cluster
	if file != "" {
		k, err := p.configuration(file)
		if err != nil {
			return c, err
		}
		c = kinds.Configured(&k.Spec.Configuration)
	}
	if gates != "" {
		var unknown []string
		if c.Limits.Features, unknown = validate.FeatureGates(strings.FieldsFunc(gates, func(r rune) bool { return r == ',' || r == ' ' })...); len(unknown) > 0 {
			fmt.Fprintln(p.notes, "feature gates that switch nothing on here:", strings.Join(unknown, ", "))
		}
	}
	return c, nil
}

// configuration reads the KubeVirt of a file.
func (p *printer) configuration(file string) (*vmi.KubeVirt, error) {
	data, err := p.read(file)
	if err != nil {
		return nil, err
	}
	o, err := manifest.Configuration(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, f := range o.Unserved {
		p.unserved = append(p.unserved, fmt.Sprintf("%s: %s: %s", file, o, f))
	}
	if len(o.Faults) == 0 {
		return o.Complete.(*vmi.KubeVirt), nil
	}
	lines := make([]string, len(o.Faults))
	for i, f := range o.Faults {
		lines[i] = fmt.Sprintf("%s: %s: %s", file, o, f)
	}
	return nil, errors.New(strings.Join(lines, "\n"))
}

// file is a file that is checked, or why it cannot be read.
type file struct {
	name string
	data []byte
	err  error
}

// files reads all files, and keeps the instance types and the preferences in them.
func (p *printer) files(names []string) []file {
	var out []file
	for _, n := range names {
		f := file{name: n}
		var sizes []vmi.Object
		if f.data, f.err = p.read(n); f.err == nil {
			if sizes, f.err = manifest.Sizes(f.data); f.err != nil {
				f.err = fmt.Errorf("%s: %w", n, f.err)
			}
		}
		out, p.sizes = append(out, f), append(p.sizes, sizes...)
	}
	return out
}

// file prints what is found in a file. The error says that it cannot be read.
func (p *printer) file(f file, c kinds.Cluster) error {
	if f.err != nil {
		return f.err
	}
	all, err := manifest.Check(f.data, c, p.sizes...)
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	for _, o := range all {
		p.object(f.name, o)
		if p.print && o.Complete != nil {
			if err := p.yaml(o); err != nil {
				return err
			}
		}
	}
	return nil
}

// yaml prints the object with defaults.
func (p *printer) yaml(o manifest.Object) error {
	text, err := o.YAML()
	if err != nil {
		return err
	}
	if p.printed {
		text = append([]byte("---\n"), text...)
	}
	p.printed = true
	_, err = p.out.Write(text)
	return err
}
