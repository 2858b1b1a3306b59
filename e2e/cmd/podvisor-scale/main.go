// Command podvisor-scale measures what many VMIs and VMs cost, on a real API server with
// simulated nodes. Run it by `make bench-scale`.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/podvisor/podvisor/e2e/scale"
	"github.com/podvisor/podvisor/internal/command"
)

var program = command.Program{
	Name: "podvisor-scale",
	Usage: `usage: podvisor-scale [FLAG...]

Measures what many VMIs and VMs cost, also those of a pool: requests, processor time and memory of virt-controller,
processor time of the API server, events; and what the VMIs of one node cost virt-handler.
The API server and Podvisor's programs are real, in a cluster of their own. Nodes and launchers
are simulated.
`,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(program.Status(run(ctx, os.Args[1:])))
}

func run(ctx context.Context, args []string) error {
	var flags flag.FlagSet
	c := scale.Config{Root: "..", Out: os.Stdout}
	flags.StringVar(&c.Name, "name", "scale", "the cluster's name")
	counts := flags.String("counts", "100,1000,3000", "how many objects there are in each run, with commas between them; empty: none")
	kinds := flags.String("kinds", "vmi,vm", "which objects: vmi, vm, pool (the VMs of one pool) or pod (pods of the shape of launchers alone)")
	flags.IntVar(&c.PerNode, "per-node", 100, "how many VMIs a simulated node has")
	flags.IntVar(&c.Users, "users", 20, "how many objects are created or deleted at the same time")
	flags.IntVar(&c.Handlers, "handler", 100, "how many VMIs the node with a real virt-handler has; 0: it is not measured")
	flags.DurationVar(&c.Idle, "idle", time.Minute, "how long all run and nothing is done")
	flags.StringVar(&c.Profiles, "profiles", "", "write profiles of virt-controller and kube-apiserver to this `folder`; the figures are higher then")
	if err := program.ParseFlags(&flags, args); err != nil {
		return err
	}
	for s := range strings.SplitSeq(*counts, ",") {
		if s == "" {
			continue
		}
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return fmt.Errorf("--counts %s: give numbers above 0", *counts)
		}
		c.Counts = append(c.Counts, n)
	}
	if len(c.Counts) > 0 {
		c.Kinds = strings.Split(*kinds, ",")
	}
	return scale.Measure(ctx, c)
}
