// Command virt-launcher is the first process of a VMI's pod: it runs one domain to its end.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/podvisor/podvisor/internal/command"
	"github.com/podvisor/podvisor/internal/storage/image"
	"github.com/podvisor/podvisor/launcher/supervisor"
	"github.com/podvisor/podvisor/vmi"
)

var program = command.Program{
	Name: "virt-launcher",
	Usage: `usage: virt-launcher --namespace NS --name NAME --uid UID [FLAG...]
       virt-launcher install DIR                    copy this program to DIR
       virt-launcher probe QUESTION [FLAG...] [-- PROGRAM [ARG...]]
           ask about the guest of this pod: ping (its agent), exec (a program in it)
       virt-launcher copy-disk [--path P] --to DIR  copy the container disk that is / to DIR
       virt-launcher share --socket S --folder DIR  serve DIR to the guest of this pod by virtio-fs
       virt-launcher inspect BYTES                  inspect the disk image on standard input with so much memory
       virt-launcher processors --to FILE           write what processors guests can have on this node
`,
}

func main() { os.Exit(program.Status(run(os.Args[1:]))) }

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "install":
		return image.Install(filepath.Join(args[1], "virt-launcher"))
	case len(args) > 0 && args[0] == "copy-disk":
		return copyDisk(args[1:])
	case len(args) > 0 && args[0] == "share":
		return shareFolder(args[1:])
	case len(args) == 2 && args[0] == "inspect":
		return supervisor.Inspection(args[1], os.Stdout)
	case len(args) > 0 && args[0] == "processors":
		return processors(args[1:])
	case len(args) > 0 && args[0] == "probe":
		return probe(args[1:])
	default:
		return launch(args)
	}
}

func launch(args []string) error {
	c, f := supervisor.Config{TerminationLog: "/dev/termination-log", Inspector: supervisor.Inspector{Command: []string{"/proc/self/exe", "inspect"}}}, flag.FlagSet{}
	saveMemory(&c)
	f.StringVar(&c.Namespace, "namespace", "", "the VMI's namespace")
	f.StringVar(&c.Name, "name", "", "the VMI's name")
	f.StringVar((*string)(&c.UID), "uid", "", "the VMI's UID")
	f.DurationVar(&c.GracePeriod, "grace-period", vmi.DefaultGracePeriod, "how long the guest may take to power off after SIGTERM")
	f.BoolVar(&c.AllowEmulation, "allow-emulation", false, "run the guest without KVM if there is none")
	f.BoolVar(&c.FailFast, "fail-fast", false, "fail at once, to test clients that handle it")
	f.BoolVar(&c.RequireState, "require-state", false, "start no guest whose persistent state has not come here by a migration")
	if err := program.ParseFlags(&f, args); err != nil {
		return err
	}
	ends, err := c.Connect(os.Stdin, os.Stdout, os.Stderr)
	if err != nil {
		return err
	}
	s, err := supervisor.New(c)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	end, err := s.Run(ctx)
	if err == nil && end.Reason.Failed() {
		err = fmt.Errorf("%s: %s", end.Reason, end.Message)
	}
	return err
}
