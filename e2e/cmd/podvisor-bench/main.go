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

Measures what a VMI costs beside a plain pod, in a local cluster of its own.
`,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(program.Status(run(ctx, os.Args[1:])))
}

func run(ctx context.Context, args []string) error {
	var flags flag.FlagSet
	runs := flags.Int("runs", 10, "how often each thing is measured")
	keep := flags.Bool("keep", false, "leave the cluster when done")
	if err := program.ParseFlags(&flags, args); err != nil {
		return err
	}
	return inCluster(ctx, *runs, *keep)
}

func inCluster(ctx context.Context, runs int, keep bool) (err error) {
	site, err := local.Up(ctx, local.Config{Name: "bench", Out: os.Stdout})
	if !keep {
		defer func() { err = errors.Join(err, site.Down(ctx)) }()
	}
	if err != nil {
		return err
	}
	for _, i := range site.Built {
		fmt.Printf("image %-16s %6.1f MB\n", i.Name, float64(i.SizeBytes)/1e6)
	}
	return measure(ctx, site, runs)
}

func measure(ctx context.Context, site local.Site, runs int) error {
	ns, err := site.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	b := bench.Bench{
		Cluster: site.Cluster, Kube: site.Kube, Instances: site.VMIs, Namespace: ns.Name, Runs: runs, Out: os.Stdout,
		PodImage: images.Reference("tools"),
		Guest: func(name string) *vmi.VirtualMachineInstance {
			v := vmitest.New(vmitest.WithName(name), vmitest.WithMasquerade("default"),
				vmitest.WithContainerDisk("root", images.Reference("demo-guest")),
				vmitest.WithCloudInit("seed", "#cloud-config\nhostname: "+name+"\n"))
			v.Namespace, v.UID = ns.Name, ""
			return v
		},
	}
	if err := b.Run(ctx); err != nil {
		return err
	}
	if err := b.VM(ctx); err != nil {
		return err
	}
	if err := b.Admission(ctx); err != nil {
		return err
	}
	return site.Kube.CoreV1().Namespaces().Delete(ctx, ns.Name, metav1.DeleteOptions{})
}
