// Command podvisor-bench measures what a VMI costs beside a plain pod, in a
// local cluster of its own. Run it by `make bench`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/e2e/bench"
	"github.com/podvisor/podvisor/e2e/images"
	"github.com/podvisor/podvisor/e2e/local"
	"github.com/podvisor/podvisor/internal/command"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

var program = command.Program{
	Name: "podvisor-bench",
	Usage: `usage: podvisor-bench [FLAG...]

Measures what a VMI costs beside a plain pod, and its streams beside the shortest way
to the guest, in a local cluster of its own.
`,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(program.Status(run(ctx, os.Args[1:])))
}

func run(ctx context.Context, args []string) (err error) {
	var flags flag.FlagSet
	runs := flags.Int("runs", 10, "how often each thing is measured")
	keep := flags.Bool("keep", false, "leave the cluster when done")
	in := flags.String("in", "", "measure in the local cluster of this `name`, in which Podvisor runs, and leave it")
	only := flags.String("only", "", "measure this alone: "+strings.Join(names(), ", "))
	if err := program.ParseFlags(&flags, args); err != nil {
		return err
	}
	if *only != "" && !slices.Contains(names(), *only) {
		return fmt.Errorf("--only %s: give one of %s", *only, strings.Join(names(), ", "))
	}
	site, done, err := openCluster(ctx, *in, *keep)
	defer func() { err = errors.Join(err, done()) }()
	if err != nil {
		return err
	}
	return measure(ctx, site, *runs, *only)
}

// openCluster starts a cluster, or finds the one that is named. done removes what was
// started.
func openCluster(ctx context.Context, name string, keep bool) (site local.Site, done func() error, err error) {
	done = func() error { return nil }
	if name != "" {
		site, err = local.Open(name)
		return site, done, err
	}
	site, err = local.Up(ctx, local.Config{Name: "bench", Out: os.Stdout})
	if !keep {
		done = func() error { return site.Down(ctx) }
	}
	if err != nil {
		return site, done, err
	}
	for _, i := range site.Built {
		fmt.Printf("image %-16s %6.1f MB\n", i.Name, float64(i.SizeBytes)/1e6)
	}
	return site, done, nil
}

// measurements are what is measured, in this order.
var measurements = []struct {
	name string
	do   func(*bench.Bench, context.Context) error
}{
	{"vmi", (*bench.Bench).Run}, {"restart", (*bench.Bench).Restart}, {"vm", (*bench.Bench).VM}, {"verbs", (*bench.Bench).Verbs},
	{"streams", (*bench.Bench).Streams}, {"ports", (*bench.Bench).Ports}, {"crowd", (*bench.Bench).Crowd},
	{"admission", (*bench.Bench).Admission}, {"processor", (*bench.Bench).Processor},
}

func names() (out []string) {
	for _, m := range measurements {
		out = append(out, m.name)
	}
	return out
}

func measure(ctx context.Context, site local.Site, runs int, only string) (err error) {
	ns, err := site.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, site.Kube.CoreV1().Namespaces().Delete(context.WithoutCancel(ctx), ns.Name, metav1.DeleteOptions{}))
	}()
	b := bench.Bench{
		Cluster: site.Cluster, Kube: site.Kube, Instances: site.VMIs, Kubectl: site.Kubectl, Namespace: ns.Name, Runs: runs, Out: os.Stdout,
		PodImage: images.Reference("tools"),
		Guest: func(name string) *vmi.VirtualMachineInstance {
			v := vmitest.New(vmitest.WithName(name), vmitest.WithMasquerade("default"),
				vmitest.WithContainerDisk("root", images.Reference("demo-guest")),
				vmitest.WithCloudInit("seed", "#cloud-config\nhostname: "+name+"\n"))
			v.Namespace, v.UID = ns.Name, ""
			return v
		},
	}
	for _, m := range measurements {
		if only != "" && only != m.name {
			continue
		}
		if err := m.do(&b, ctx); err != nil {
			return err
		}
	}
	return nil
}
