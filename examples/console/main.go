// Command console connects the terminal to the serial console of a VMI.
//
//	console [-n NAMESPACE] NAME
//
// Every key goes to the guest, Ctrl-C too. Ctrl-] leaves: the guest runs on and nothing is
// logged out. It takes the cluster from KUBECONFIG or ~/.kube/config, and needs the right
// to get virtualmachineinstances/console of subresources.kubevirt.io.
//
// Where the input is no terminal and ends, as that of a pipe, the session ends when the guest
// has written nothing for five seconds after it.
//
// A guest has one console: who opens it ends the session of who has it open. A session that
// was ended so, or by the end of the guest, is not opened again: the exit status is 1 then.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/podvisor/podvisor/examples/command"
	"github.com/podvisor/podvisor/launcher/terminal"
	"github.com/podvisor/podvisor/vmi/client"
)

var program = command.Program{
	Name:  "console",
	Usage: "usage: console [-n NAMESPACE] NAME\n\nconnects the terminal to the serial console of a VMI; Ctrl-] leaves",
}

func main() { os.Exit(program.Exit(run(os.Args[1:]), os.Stderr)) }

func run(args []string) error {
	var flags flag.FlagSet
	namespace := flags.String("n", "", "the `NAMESPACE` of the VMI; default: that of the current context")
	if err := program.Parse(&flags, args, os.Stdout); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return command.Fault("one VMI is needed")
	}
	c, in, err := command.Cluster(*namespace)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP, os.Interrupt)
	defer stop()
	return connect(ctx, c.VirtualMachineInstances(in), flags.Arg(0), os.Stdin, os.Stdout, os.Stderr)
}

// connect joins the terminal and the console until one of both ends.
func connect(ctx context.Context, vmis client.VirtualMachineInstances, name string, in, out *os.File, notes io.Writer) (err error) {
	stream, err := vmis.Console(ctx, name)
	if err != nil {
		return err
	}
	fmt.Fprintf(notes, "Connected to the console of %s. Press Enter for a prompt, and Ctrl-] to leave.\n", name)
	raw, err := terminal.Open(in)
	if err != nil {
		return errors.Join(err, stream.Close())
	}
	err = session(ctx, stream, in, out)
	// The terminal is given back even if the guest cannot be reached any more.
	if raw != nil {
		if e := raw.Close(); err == nil {
			err = e
		}
		fmt.Fprintln(notes)
	}
	return err
}
