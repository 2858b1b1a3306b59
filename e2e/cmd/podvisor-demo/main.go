// Command podvisor-demo shows Podvisor at work: `up` starts a local cluster (or
// uses yours, with CLUSTER=existing and KUBECONFIG), installs Podvisor, boots a
// VMI and shows it; `down` removes the demo. Run it by `make demo`. CLUSTER=name is the
// name of the local cluster, which is demo without it.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/podvisor/podvisor/e2e/cluster"
	"github.com/podvisor/podvisor/e2e/debian"
	"github.com/podvisor/podvisor/e2e/demo"
	"github.com/podvisor/podvisor/e2e/images"
	"github.com/podvisor/podvisor/e2e/kubectl"
	"github.com/podvisor/podvisor/internal/command"
)

const (
	// usual is the name of the demo's own cluster.
	usual = "demo"
	// existing is the value of CLUSTER that means the cluster of KUBECONFIG.
	existing = "existing"
)

var program = command.Program{
	Name: "podvisor-demo",
	Usage: `usage: podvisor-demo up      start a local cluster, install Podvisor and boot a VMI
       podvisor-demo down    remove the demo and its cluster

With the environment variable CLUSTER=existing, the cluster of KUBECONFIG is used.
IMAGES is the prefix of the images' names in a registry then, and TAG their tag.
Any other value of CLUSTER is the name of the local cluster, instead of demo.`,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(program.Status(run(ctx, os.Args[1:])))
}

func run(ctx context.Context, args []string) error {
	var flags flag.FlagSet
	if err := program.Parse(&flags, args); err != nil {
		return err
	}
	args = flags.Args()
	name := cmp.Or(os.Getenv("CLUSTER"), usual)
	switch {
	case len(args) == 1 && args[0] == "up" && name == existing:
		return upExisting(ctx)
	case len(args) == 1 && args[0] == "up":
		return up(ctx, name)
	case len(args) == 1 && args[0] == "down" && name == existing:
		return errors.New("the demo does not remove an existing cluster; remove Podvisor with `kubectl delete vmi hello`, `kubectl delete vm lasting` and `kubectl delete -k manifests`")
	case len(args) == 1 && args[0] == "down":
		return cluster.Down(ctx, cluster.Config{Name: name, Out: os.Stdout})
	}
	return command.Fault("one command is needed, up or down")
}

// up shows the demo in a cluster of its own.
func up(ctx context.Context, name string) error {
	start := time.Now()
	if err := announce(ctx, name); err != nil {
		return err
	}
	title("Start a local Kubernetes with two nodes")
	c, err := cluster.Up(ctx, cluster.Config{Name: name, Out: os.Stdout})
	if err != nil {
		return fmt.Errorf("start the cluster: %w", err)
	}
	title("Build the images and put them on the nodes")
	built, err := images.Build(ctx, images.Config{Out: os.Stdout})
	if err != nil {
		return fmt.Errorf("build the images: %w", err)
	}
	if err := c.Load(ctx, images.Tars(built)...); err != nil {
		return fmt.Errorf("put the images on the nodes: %w", err)
	}
	d := demo.Demo{
		Root: "..", Kubectl: kubectl.Kubectl{Path: c.Kubectl, Kubeconfig: c.Kubeconfig}, Out: os.Stdout,
		Reference: images.Reference, Content: images.Content(built),
	}
	if err := d.Run(ctx); err != nil {
		return err
	}
	d.HowToGoOn("export KUBECONFIG="+c.Kubeconfig+"\nalias kubectl="+c.Kubectl, "make demo-down"+named(name))
	fmt.Printf("\nThe whole demo took %.0f s.\n", time.Since(start).Seconds())
	return nil
}

// named is what is added to a command of make for the cluster with this name.
func named(name string) string {
	if name == usual {
		return ""
	}
	return " CLUSTER=" + name
}

// announce says how long the demo takes, and what it installs and builds.
func announce(ctx context.Context, name string) error {
	unbuilt, missing, err := cluster.Needs(ctx, cluster.Config{Name: name})
	if err != nil {
		return err
	}
	lack, err := debian.Missing(ctx, images.Tools()...)
	if err != nil {
		return err
	}
	fmt.Print(announcement(name, unbuilt, append(missing, lack...)))
	return nil
}

// announcement is what is said before anything is done.
func announcement(name string, unbuilt, missing []string) string {
	var b strings.Builder
	if len(unbuilt) > 0 {
		fmt.Fprintf(&b, "This takes about 20 minutes on two processors: it builds from source %s.\n", strings.Join(unbuilt, ", "))
	} else {
		b.WriteString("This takes a few minutes: Kubernetes and the container runtime are built already.\n")
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		fmt.Fprintf(&b, "It installs the Debian packages %s, which stay.\n", strings.Join(slices.Compact(missing), ", "))
	} else {
		b.WriteString("It installs nothing.\n")
	}
	b.WriteString("`make demo-down" + named(name) + "` removes the cluster. What is built stays in the cache of the user, for the next time.\n" +
		"`make try` boots a guest in three minutes, without Kubernetes.\n")
	return b.String()
}

// upExisting shows the demo in the cluster of KUBECONFIG, whose nodes must be
// able to get the images.
func upExisting(ctx context.Context) error {
	config := os.Getenv("KUBECONFIG")
	if config == "" {
		return errors.New("CLUSTER=existing needs KUBECONFIG to name the cluster")
	}
	prefix, tag := os.Getenv("IMAGES"), os.Getenv("TAG")
	if prefix == "" {
		return errors.New("CLUSTER=existing needs IMAGES, the prefix of the images in a registry that the cluster can reach (IMAGES=example.com/podvisor TAG=dev); " +
			"build them with the Containerfiles in images/, or push the archives that `make images` names")
	}
	if tag == "" {
		tag = "dev"
	}
	d := demo.Demo{
		Root: "..", Kubectl: kubectl.Kubectl{Path: os.Getenv("KUBECTL"), Kubeconfig: config}, Out: os.Stdout,
		Reference: func(component string) string { return prefix + "/" + component + ":" + tag },
	}
	if err := d.Run(ctx); err != nil {
		return err
	}
	d.HowToGoOn("export KUBECONFIG="+config, "kubectl delete vmi hello; kubectl delete vm lasting; kubectl delete -k manifests")
	return nil
}

func title(s string) { fmt.Printf("\n== %s\n", s) }
