// Command run-vmi boots the VMI of a manifest on a host with libvirt and QEMU, without
// Kubernetes and as an ordinary user. It is virt-launcher without a pod.
//
//	run-vmi [-image REFERENCE=ARCHIVE]… [-volume NAME=PATH]… [-network passt|user|none] [-port GUEST=HOST]… FILE
//
// FILE has one VMI, or a VM or replica set with its template; - is standard input. The
// guest's serial console is on the terminal. ^] asks the guest to power off, and once
// more switches it off. SIGTERM, SIGINT and SIGHUP ask it too. It is switched off when its
// grace period is over.
//
// The exit status is 0 when the guest has powered off, 1 when it could not run,
// crashed or was switched off, and 2 if the command line is wrong. What was written to
// container disks, ephemeral and empty disks is lost then.
//
// Traps: a VMI that asks for a Secret or ConfigMap cannot run here. If the program is
// killed with SIGKILL, libvirtd and QEMU go on, and the folder vm… stays in TMPDIR,
// whose path must be short.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/podvisor/podvisor/examples/command"
	"github.com/podvisor/podvisor/launcher/supervisor"
)

// inspection is the first argument of the program where it inspects an image, as the
// child of itself.
const inspection = "inspect"

var inspector = supervisor.Inspector{Command: []string{"/proc/self/exe", inspection}}

var program = command.Program{
	Name:  "run-vmi",
	Usage: "usage: run-vmi [FLAG...] FILE\n\nboots the VMI of a manifest on this host; ^] powers it off",
}

func main() { os.Exit(program.Exit(run(os.Args[1:]), os.Stderr)) }

func run(args []string) error {
	if len(args) == 2 && args[0] == inspection {
		return supervisor.Inspection(args[1], os.Stdout)
	}
	h := host{images: map[string]string{}, volumes: map[string]string{}, ports: map[int]int{}}
	var flags flag.FlagSet
	flags.Func("image", "the `REFERENCE=ARCHIVE` of a container disk, as docker save or an OCI layout in a tar file", pair(h.images))
	flags.Func("volume", "the `NAME=PATH` of a volume: a disk image, a block device, or a folder with disk.img", pair(h.volumes))
	flags.Func("network", "what the guest's interfaces are on: `passt` (the default), user (QEMU's user-mode network, without ports) or none", h.setNetwork)
	flags.Func("port", "the `GUEST=HOST` ports: a port of an interface in FILE, and the one of 127.0.0.1 that leads to it", h.setPort)
	verbose := flags.Bool("v", false, "log what is done")
	if err := program.Parse(&flags, args, os.Stdout); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return command.Fault("one file is needed")
	}
	instance, err := read(flags.Arg(0))
	if err != nil {
		return err
	}
	t, err := openConsole(os.Stdin, os.Stdout)
	if err != nil {
		return err
	}
	defer t.Close()
	level := slog.LevelWarn
	if *verbose {
		level = slog.LevelDebug
	}
	h.notes = t.log
	h.log = slog.New(slog.NewTextHandler(t.log, &slog.HandlerOptions{Level: level}))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	end, err := h.run(ctx, instance, t)
	if err == nil && !end.Reason.Succeeded() {
		err = fmt.Errorf("%s: %s", end.Reason, end.Message)
	}
	return err
}
