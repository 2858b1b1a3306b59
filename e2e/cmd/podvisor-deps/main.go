// Command podvisor-deps installs the Debian packages that the tests need: the
// programs that the edges of the library call.
package main

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/podvisor/podvisor/e2e/debian"
	"github.com/podvisor/podvisor/internal/command"
)

// needed are the packages, and npm where there is none: it comes with other packages of
// nodejs too, which Debian's package is in conflict with.
func needed() []string {
	if _, err := exec.LookPath("npm"); err != nil {
		return append(slices.Clone(packages), "npm")
	}
	return packages
}

// packages are what the tests of the root module run, and what a test is linked with that
// looks for races. What the cluster and the images need is installed where they are made.
var packages = []string{
	"busybox-static",
	"chromium",
	"dosfstools",
	"gcc",
	"grub-efi-amd64-signed",
	"iproute2",
	"libarchive-tools",
	"libc6-dev",
	"libvirt-clients",
	"libvirt-daemon",
	"libvirt-daemon-driver-qemu",
	"libxml2-utils",
	"mtools",
	"nftables",
	"ovmf",
	"passt",
	"qemu-system-x86",
	"qemu-utils",
	"seabios",
	"shim-signed",
	"swtpm",
	"swtpm-tools",
	"util-linux",
}

var program = command.Program{
	Name: "podvisor-deps",
	Usage: `usage: podvisor-deps

Installs the Debian packages that the tests need: ` + strings.Join(packages, ", ") + ",\nand npm where there is none.",
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(program.Status(run(ctx, os.Args[1:])))
}

func run(ctx context.Context, args []string) error {
	if err := program.ParseFlags(&flag.FlagSet{}, args); err != nil {
		return err
	}
	return debian.Ensure(ctx, os.Stdout, needed()...)
}
