package cluster_test

import (
	"context"
	"fmt"
	"os"

	"github.com/podvisor/podvisor/e2e/cluster"
	"github.com/podvisor/podvisor/e2e/cluster/plan"
)

// A cluster for a person, which is left running.
func ExampleUp() {
	ctx := context.Background()
	c, err := cluster.Up(ctx, cluster.Config{Out: os.Stdout})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := c.Load(ctx, "image.tar"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(c.Usage())
}

// An API server for a test, and nothing else.
func ExampleUp_apiServer() {
	ctx := context.Background()
	c, err := cluster.Up(ctx, cluster.Config{Name: "test-api", Extent: plan.APIServer})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(c.Kubeconfig)
	if err := c.Down(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func ExampleCluster_Node() {
	c, err := cluster.Open(cluster.Config{Name: "dev"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	for _, name := range c.NodeNames() {
		out, err := c.Node(name).Command(context.Background(), "ip", "-brief", "link").Output()
		fmt.Println(name, string(out), err)
	}
}
