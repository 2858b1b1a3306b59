// Command vmi-to-pod prints the launcher pods of the VMIs in manifests, as
// virt-controller creates them, without a cluster.
//
//	vmi-to-pod [-image IMAGE] [-emulate] FILE…
//
// A VM and a replica set have the VMI of their template. The file - is standard
// input. What only a cluster knows is assumed: every claim is a file system.
//
// If something is wrong in one of the files, nothing is printed but the faults, one
// line for each, and the exit status is 1. It is 2 for a wrong command line.
package main

import (
	"flag"
	"io"
	"os"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/examples/command"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/kinds"
)

var program = command.Program{
	Name:  "vmi-to-pod",
	Usage: "usage: vmi-to-pod [FLAG...] FILE...\n\nprints the launcher pods of VMIs",
}

func main() { os.Exit(status(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// status is the program. It returns the exit status.
func status(args []string, in io.Reader, out, faults io.Writer) int {
	return program.Exit(run(args, in, out), faults)
}

func run(args []string, in io.Reader, out io.Writer) error {
	c := pod.Config{}
	var flags flag.FlagSet
	flags.StringVar(&c.Image, "image", "podvisor/virt-launcher", "the `reference` of the launcher's image")
	flags.BoolVar(&c.AllowEmulation, "emulate", false, "print the pods of a cluster whose nodes have no KVM")
	if err := program.Parse(&flags, args, out); err != nil {
		return err
	}
	all, err := command.Manifests(flags.Args(), in, kinds.Cluster{}, func(v *vmi.VirtualMachineInstance) (string, error) {
		p, err := pod.Render(v, c)
		if err != nil {
			return "", err
		}
		text, err := yaml.Marshal(p)
		return string(text), err
	})
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, strings.Join(all, "---\n"))
	return err
}
