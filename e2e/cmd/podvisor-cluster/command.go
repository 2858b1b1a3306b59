package main

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"github.com/podvisor/podvisor/e2e/cluster"
	"github.com/podvisor/podvisor/internal/command"
)

func build(ctx context.Context, c cluster.Config, _ []string) error {
	return cluster.Build(ctx, c)
}

func up(ctx context.Context, c cluster.Config, _ []string) error {
	started, err := cluster.Up(ctx, c)
	if err != nil {
		return err
	}
	fmt.Println()
	fmt.Println(started.Usage())
	fmt.Println("remove:  podvisor-cluster down --name", started.Name)
	return nil
}

func down(ctx context.Context, c cluster.Config, _ []string) error {
	return cluster.Down(ctx, c)
}

func status(ctx context.Context, c cluster.Config, _ []string) error {
	found, err := cluster.Open(c)
	if err != nil {
		return err
	}
	problems := found.Problems(ctx)
	for _, p := range problems {
		fmt.Println(p)
	}
	if len(problems) > 0 {
		return errNotWell
	}
	fmt.Printf("cluster %s is well\n\n%s\n", found.Name, found.Usage())
	return nil
}

func load(ctx context.Context, c cluster.Config, tars []string) error {
	if len(tars) == 0 {
		return command.Fault("load needs the path of an image archive")
	}
	found, err := cluster.Open(c)
	if err != nil {
		return err
	}
	return found.Load(ctx, tars...)
}

// kubectl becomes kubectl, so that terminals, signals and exit codes are its own.
func kubectl(_ context.Context, c cluster.Config, args []string) error {
	found, err := cluster.Open(c)
	if err != nil {
		return err
	}
	env := append(os.Environ(), "KUBECONFIG="+found.Kubeconfig)
	return syscall.Exec(found.Kubectl, append([]string{"kubectl"}, args...), env)
}

func list(ctx context.Context, c cluster.Config, _ []string) error {
	names, err := cluster.List(c)
	if err != nil {
		return err
	}
	for _, name := range names {
		state := "well"
		found, err := cluster.Open(cluster.Config{Name: name, Dir: c.Dir})
		switch {
		case err != nil:
			state = err.Error()
		default:
			if problems := found.Problems(ctx); len(problems) > 0 {
				state = problems[0].String()
			}
		}
		fmt.Printf("%s\t%s\n", name, state)
	}
	return nil
}
