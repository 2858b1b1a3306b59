// Command podvisor-install installs Podvisor from the working tree into a local cluster,
// which it starts if it does not run. Run it by `make install`.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/podvisor/podvisor/e2e/local"
	"github.com/podvisor/podvisor/internal/command"
)

var program = command.Program{
	Name: "podvisor-install",
	Usage: `usage: podvisor-install [FLAG...]

Starts the local cluster if it does not run, builds the images, puts them on the
nodes, installs Podvisor with emulation, and ends when VMIs are accepted. To do it
again replaces the components whose images have changed.
`,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(program.Status(run(ctx, os.Args[1:])))
}

func run(ctx context.Context, args []string) error {
	var flags flag.FlagSet
	name := flags.String("name", "dev", "name of the cluster")
	if err := program.ParseFlags(&flags, args); err != nil {
		return err
	}
	site, err := local.Up(ctx, local.Config{Name: *name, Out: os.Stdout})
	if err != nil {
		return err
	}
	fmt.Printf("\nPodvisor is installed in cluster %s.\n\n%s\n", site.Cluster.Name, site.Cluster.Usage())
	return nil
}
