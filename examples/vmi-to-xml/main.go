// Command vmi-to-xml prints the libvirt domains of the VMIs in manifests, as
// virt-launcher makes them, without a cluster and without libvirt.
//
//	vmi-to-xml [-arch ARCH] [-emulate] FILE…
//
// A VM and a replica set have the VMI of their template. The file - is standard
// input. What only a node knows is assumed: a disk in a container image is a qcow2
// image, every other one a raw file of 1 GiB, and each interface is bound.
//
// If something is wrong in one of the files, nothing is printed but the faults, one
// line for each, and the exit status is 1. It is 2 for a wrong command line.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/podvisor/podvisor/internal/command"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/kinds"
	"github.com/podvisor/podvisor/vmi/manifest"
)

func main() { os.Exit(status(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// status is the program. It returns the exit status.
func status(args []string, in io.Reader, out, faults io.Writer) int {
	p := command.Program{Name: "vmi-to-xml", Usage: "usage: vmi-to-xml [FLAG...] FILE...\n\nprints the libvirt domains of VMIs", Out: out, Err: faults}
	return p.Status(run(p, args, in, out))
}

func run(p command.Program, args []string, in io.Reader, out io.Writer) error {
	var flags flag.FlagSet
	arch := flags.String("arch", defaults.AMD64, "the architecture of VMIs that name none")
	emulate := flags.Bool("emulate", false, "print the domains of a node without KVM")
	if err := p.Parse(&flags, args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return command.Fault("no file is given")
	}
	c := kinds.Cluster{Defaults: defaults.Profile{Architecture: *arch}}
	var all []string
	var wrong []error
	for _, name := range flags.Args() {
		domains, err := read(name, in, c, domain.Host{KVM: !*emulate, AllowEmulation: *emulate, Defaults: c.Defaults})
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", name, err))
		}
		all = append(all, domains...)
	}
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	for _, xml := range all {
		if _, err := fmt.Fprintln(out, xml); err != nil {
			return err
		}
	}
	return nil
}

// read returns the domains of the VMIs of a file.
func read(name string, in io.Reader, c kinds.Cluster, host domain.Host) ([]string, error) {
	data, err := content(name, in)
	if err != nil {
		return nil, err
	}
	instances, err := manifest.Instances(data, c)
	if err != nil {
		return nil, err
	}
	var all []string
	var wrong []error
	for _, v := range instances {
		xml, err := xml(v, host)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s/%s: %w", v.Namespace, v.Name, err))
		}
		all = append(all, xml)
	}
	return all, errors.Join(wrong...)
}

func content(name string, in io.Reader) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(in)
	}
	return os.ReadFile(name)
}
