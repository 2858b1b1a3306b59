// Command virt-launcher is the first process of a VMI's pod: it runs one
// domain from its start to its end.
//
//	virt-launcher --namespace NS --name NAME --uid UID [--grace-period 30s] [--allow-emulation]
//	virt-launcher install DIR              copy this program to DIR
//	virt-launcher copy-disk [--path P] --to DIR  copy the container disk that is / to DIR
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/podvisor/podvisor/launcher/supervisor"
	"github.com/podvisor/podvisor/storage/image"
	"github.com/podvisor/podvisor/vmi"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "virt-launcher:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "install":
		return image.Install(filepath.Join(args[1], "virt-launcher"))
	case len(args) > 0 && args[0] == "copy-disk":
		return copyDisk(args[1:])
	default:
		return launch(args)
	}
}

func copyDisk(args []string) error {
	f := flag.NewFlagSet("copy-disk", flag.ExitOnError)
	path := f.String("path", "", "the absolute `path` of the disk image; default: the one file in /disk")
	to := f.String("to", "", "the `folder` that the image is copied to, into its folder disk")
	_ = f.Parse(args) // exits on errors
	if *to == "" || f.NArg() > 0 {
		return errors.New("usage: virt-launcher copy-disk [--path P] --to DIR")
	}
	return image.Copy("/", *path, *to)
}

func launch(args []string) error {
	level := &slog.LevelVar{}
	c := supervisor.Config{TerminationLog: "/dev/termination-log", LogLevel: level}
	ends, err := connect(&c)
	if err != nil {
		return err
	}
	f := flag.NewFlagSet("virt-launcher", flag.ExitOnError)
	f.StringVar(&c.Namespace, "namespace", "", "the VMI's namespace")
	f.StringVar(&c.Name, "name", "", "the VMI's name")
	f.StringVar((*string)(&c.UID), "uid", "", "the VMI's UID")
	f.DurationVar(&c.GracePeriod, "grace-period", vmi.DefaultGracePeriod, "how long the guest may take to power off after SIGTERM")
	f.BoolVar(&c.AllowEmulation, "allow-emulation", false, "run the guest without KVM if there is none")
	if _ = f.Parse(args); f.NArg() > 0 { // exits on errors
		return fmt.Errorf("virt-launcher takes no argument %q", f.Arg(0))
	}
	s, err := supervisor.New(c)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	end, err := s.Run(ctx)
	if err == nil && !end.Reason.Succeeded() {
		err = fmt.Errorf("%s: %s", end.Reason, end.Message)
	}
	return err
}
