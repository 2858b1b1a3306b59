// Command podvisor-images builds the project's container images on this host.
//
//	podvisor-images build [NAME...]   make what is not up to date, print where it is
//	podvisor-images sizes [NAME...]   the same, and what takes the space in each
//	podvisor-images unpack NAME DIR   the same, and its files below a folder
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/podvisor/podvisor/e2e/images"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "podvisor-images:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	names := strings.Join(images.Names(), "|")
	switch {
	case len(args) == 3 && args[0] == "unpack":
		built, err := images.Build(ctx, images.Config{Out: os.Stdout, Names: args[1:2]})
		if err != nil {
			return err
		}
		return images.Unpack(built[0], args[2])
	case len(args) == 0 || args[0] != "build" && args[0] != "sizes":
		return fmt.Errorf("usage: podvisor-images build|sizes [%s]..., or unpack %[1]s DIR", names)
	}
	built, err := images.Build(ctx, images.Config{Out: os.Stdout, Names: args[1:]})
	if err != nil || args[0] == "build" {
		return err
	}
	for _, b := range built {
		text, err := images.Contents(b)
		if err != nil {
			return err
		}
		fmt.Printf("\n%s\n", text)
	}
	return nil
}
