// Command podvisor-cluster runs real Kubernetes clusters on this host.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/podvisor/podvisor/e2e/cluster"
)

const usage = `usage: podvisor-cluster COMMAND [FLAG...] [ARGUMENT...]

  up              start the cluster, or repair it, and wait until it is well
  down            remove the cluster and everything it has on this host
  status          say what works and what does not
  load TAR...     load image archives to every node
  kubectl ARG...  run kubectl in the cluster
  list            list the clusters

  --name NAME     the cluster's name; "dev" unless said
  --nodes N       up: how many nodes it has; 2 unless said
  --extent WHAT   up: "apiserver" starts etcd and kube-apiserver alone

Flags come before arguments. Root is needed.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "podvisor-cluster:", err)
		os.Exit(1)
	}
}

// run chooses the command. The commands of processes that the cluster itself
// starts are in internal.go.
func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if internal, ok := internals[args[0]]; ok {
		return internal(ctx, args[1:])
	}
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	c := cluster.Config{Out: os.Stdout}
	flags.StringVar(&c.Name, "name", "", "")
	flags.IntVar(&c.Nodes, "nodes", 0, "")
	flags.StringVar((*string)(&c.Extent), "extent", "", "")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	command, ok := commands[args[0]]
	if !ok {
		fmt.Fprint(os.Stderr, usage)
		return fmt.Errorf("unknown command %q", args[0])
	}
	return command(ctx, c, flags.Args())
}

var commands = map[string]func(context.Context, cluster.Config, []string) error{
	"up": up, "down": down, "status": status, "load": load, "kubectl": kubectl, "list": list,
}

// errNotWell ends "status" after it has printed why.
var errNotWell = errors.New("the cluster is not well")
