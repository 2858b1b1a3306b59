// Command podvisor-try boots the VMI of a manifest on this host, without Kubernetes, with
// what it installs and builds for it. Run it by `make try`.
package main

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"syscall"

	"github.com/podvisor/podvisor/e2e/try"
	"github.com/podvisor/podvisor/internal/command"
)

var program = command.Program{
	Name: "podvisor-try",
	Usage: `usage: podvisor-try [--] FILE [FLAG-OF-RUN-VMI...]

Boots the VMI of a manifest on this host, without Kubernetes. It installs libvirt, QEMU
and passt of the distribution where they are missing, and builds the demo guest. The
guest's console is on the terminal; ^] powers the guest off. Run it in the folder of the
repository, or by make try.`,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	os.Exit(program.Status(run(ctx, os.Args[1:])))
}

func run(ctx context.Context, args []string) error {
	var flags flag.FlagSet
	if err := program.Parse(&flags, args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return command.Fault("a file is needed")
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	return try.Run(ctx, try.Config{Root: root, File: flags.Arg(0), Args: flags.Args()[1:], Out: os.Stdout})
}
