// Command podvisor-deps installs the Debian packages that the tests need: the
// programs that the edges of the library call.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/podvisor/podvisor/e2e/debian"
)

// packages are what the tests of the root module run. What the cluster and the
// images need is installed where they are made.
var packages = []string{
	"busybox-static",
	"iproute2",
	"libvirt-daemon",
	"libvirt-daemon-driver-qemu",
	"libxml2-utils",
	"nftables",
	"qemu-system-x86",
	"qemu-utils",
	"seabios",
	"util-linux",
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := debian.Ensure(ctx, os.Stdout, packages...); err != nil {
		fmt.Fprintln(os.Stderr, "podvisor-deps:", err)
		os.Exit(1)
	}
}
