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
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/podvisor/podvisor/examples/command"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/kinds"
)

var program = command.Program{
	Name:  "vmi-to-xml",
	Usage: "usage: vmi-to-xml [FLAG...] FILE...\n\nprints the libvirt domains of VMIs",
}

func main() { os.Exit(status(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// status is the program. It returns the exit status.
func status(args []string, in io.Reader, out, faults io.Writer) int {
	return program.Exit(run(args, in, out), faults)
}

func run(args []string, in io.Reader, out io.Writer) error {
	var flags flag.FlagSet
	arch := flags.String("arch", defaults.AMD64, "the architecture of VMIs that name none")
	emulate := flags.Bool("emulate", false, "print the domains of a node without KVM")
	if err := program.Parse(&flags, args, out); err != nil {
		return err
	}
	c := kinds.Cluster{Defaults: defaults.Profile{Architecture: *arch}}
	host := domain.Host{KVM: !*emulate, AllowEmulation: *emulate}
	all, err := command.Manifests(flags.Args(), in, c, func(v *vmi.VirtualMachineInstance) (string, error) { return xml(v, host) })
	if err != nil {
		return err
	}
	for _, xml := range all {
		if _, err := fmt.Fprintln(out, xml); err != nil {
			return err
		}
	}
	return nil
}
