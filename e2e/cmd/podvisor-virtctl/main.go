// Command podvisor-virtctl builds KubeVirt's virtctl from its module, unmodified.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/podvisor/podvisor/e2e/toolchain"
	"github.com/podvisor/podvisor/internal/command"
)

var program = command.Program{
	Name: "podvisor-virtctl",
	Usage: `usage: podvisor-virtctl

Builds the virtctl of KubeVirt, from its source as the Go module proxy has it, unless the cache has it.
Prints the path of the program on standard output, and the progress of the build on standard error.`,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(program.Status(run(ctx, os.Args[1:])))
}

func run(ctx context.Context, args []string) error {
	if err := program.ParseFlags(&flag.FlagSet{}, args); err != nil {
		return err
	}
	path, err := toolchain.Virtctl(ctx, toolchain.Config{Out: os.Stderr})
	if err != nil {
		return err
	}
	fmt.Println(path)
	return nil
}
