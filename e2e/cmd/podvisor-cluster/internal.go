package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/e2e/cluster/host"
	"github.com/podvisor/podvisor/e2e/cluster/volume"
)

// internals are the commands of the processes that a cluster itself starts.
var internals = map[string]func(context.Context, []string) error{
	"init": initCluster, "node": node, "bootstrap": bootstrap, "volumes": volumes,
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
	if len(args) != 5 {
		return fmt.Errorf("bootstrap takes a URL and four files")
	}
	return host.Bootstrap(ctx, host.BootstrapConfig{
		Server: args[0], CA: args[1], Cert: args[2], Key: args[3], Objects: args[4],
	})
}

func volumes(ctx context.Context, args []string) error {
	if len(args) != 5 {
		return fmt.Errorf("volumes takes a URL, three files and a folder")
	}
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: args[0], TLSClientConfig: rest.TLSClientConfig{
		CAFile: args[1], CertFile: args[2], KeyFile: args[3],
	}})
	if err != nil {
		return err
	}
	return volume.Run(ctx, volume.Config{Kube: kube, State: args[4], Logger: logger()})
}
