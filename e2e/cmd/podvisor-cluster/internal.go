package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/podvisor/podvisor/e2e/cluster/host"
)

// internals are the commands of the processes that a cluster itself starts.
var internals = map[string]func(context.Context, []string) error{
	"init": initCluster, "node": node, "bootstrap": bootstrap,
}

// listenerFD is where the starter leaves the listener of the API.
const listenerFD = 3

func logger() *slog.Logger { return slog.New(slog.NewTextHandler(os.Stderr, nil)) }

func initCluster(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("init takes a folder and an id")
	}
	file := os.NewFile(listenerFD, "listener")
	listener, err := net.FileListener(file)
	if err != nil {
		return fmt.Errorf("take the listener: %w", err)
	}
	file.Close()
	return host.RunCluster(ctx, args[0], args[1], listener, logger())
}

func node(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("node takes a folder and a name")
	}
	return host.RunNode(ctx, args[0], args[1], logger())
}

func bootstrap(ctx context.Context, args []string) error {
	if len(args) < 5 {
		return fmt.Errorf("bootstrap takes a URL, three files of keys and files of objects")
	}
	return host.Bootstrap(ctx, host.BootstrapConfig{
		Server: args[0], CA: args[1], Cert: args[2], Key: args[3], Objects: args[4:],
	})
}
