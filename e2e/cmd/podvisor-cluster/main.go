// Command podvisor-cluster runs real Kubernetes clusters on this host.
package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/signal"
	"syscall"

	"github.com/podvisor/podvisor/e2e/cluster"
	"github.com/podvisor/podvisor/internal/command"
)

var program = command.Program{Name: "podvisor-cluster", Usage: usage}

const usage = `usage: podvisor-cluster COMMAND [FLAG...] [ARGUMENT...]

  build           build what clusters run, and start none
  up              start the cluster, or repair it, and wait until it is well
  down            remove the cluster and everything it has on this host
  status          say what works and what does not
  load TAR...     load image archives to every node
  kubectl ARG...  run kubectl in the cluster
  list            list the clusters

Flags come before arguments. Root is needed.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(program.Status(run(ctx, os.Args[1:])))
}

// run chooses the command. The commands of processes that the cluster itself
// starts are in internal.go.
func run(ctx context.Context, args []string) error {
	if len(args) > 0 {
		if internal, ok := internals[args[0]]; ok {
			return internal(ctx, args[1:])
		}
	}
	var flags flag.FlagSet
	c := cluster.Config{Out: os.Stdout}
	flags.StringVar(&c.Name, "name", "", "the cluster's `name`; \"dev\" unless said")
	flags.IntVar(&c.Nodes, "nodes", 0, "up: how `many` nodes it has; 2 unless said")
	flags.StringVar((*string)(&c.Extent), "extent", "", "up: `apiserver` starts etcd and kube-apiserver alone")
	// Flags may come before the command and after it.
	if err := program.Parse(&flags, args); err != nil {
		return err
	}
	if args = flags.Args(); len(args) == 0 {
		return command.Fault("a command is missing")
	}
	do, ok := commands[args[0]]
	if !ok {
		return command.Fault("unknown command %q", args[0])
	}
	if err := program.Parse(&flags, args[1:]); err != nil {
		return err
	}
	return do(ctx, c, flags.Args())
}

var commands = map[string]func(context.Context, cluster.Config, []string) error{
	"build": build, "up": up, "down": down, "status": status, "load": load, "kubectl": kubectl, "list": list,
}

// errNotWell ends "status" after it has printed why.
var errNotWell = errors.New("the cluster is not well")
