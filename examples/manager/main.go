// Manager runs Podvisor's controllers in a program that is not Podvisor's: an operator with
// a controller-runtime manager, a leader election and a reconciler of its own. It is a
// module of its own, as such an operator would be.
//
//	go run . -namespace kubevirt -launcher-image registry.example/virt-launcher:v1
//
// It takes the cluster from KUBECONFIG or ~/.kube/config, and in a pod from the pod's
// service account, which needs the rights of virt-controller. It takes the place of
// virt-controller's loops and webhooks, and serves no verbs. docs/embedding.md explains it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/podvisor/podvisor/scheduler/controller"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// options are the flags.
type options struct{ namespace, image, webhooks, metrics, health string }

func main() {
	var o options
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.namespace, "namespace", "kubevirt", "namespace of virt-handler and of the lease")
	flags.StringVar(&o.image, "launcher-image", "", "image of the launcher pods")
	flags.StringVar(&o.webhooks, "webhooks", ":8443", "address of the webhooks")
	flags.StringVar(&o.metrics, "metrics", ":8080", "address of the metrics")
	flags.StringVar(&o.health, "health", ":8081", "address of the health")
	switch err := flags.Parse(os.Args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Println("usage: manager [FLAG...]")
		flags.SetOutput(os.Stdout)
		flags.PrintDefaults()
		return
	case err != nil:
		fmt.Fprintf(os.Stderr, "manager: %v: see manager --help\n", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	ctrl.SetLogger(zap.New())
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), vmi.AddToScheme(scheme)); err != nil {
		return err
	}
	var hooks webhooks
	server, err := hooks.server(o.webhooks)
	if err != nil {
		return err
	}
	// The manager makes a client of its own for the lease, so that no renewal waits behind
	// the requests of the controllers.
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme,
		// The lease of virt-controller, so that never both work, and which its account may write.
		LeaderElection: true, LeaderElectionNamespace: o.namespace, LeaderElectionID: "virt-controller",
		// The program ends when Start returns, and Start returns when the loops have ended.
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsserver.Options{BindAddress: o.metrics}, HealthProbeBindAddress: o.health,
		WebhookServer: server,
	})
	if err != nil {
		return err
	}
	var c clients
	if c.vmis, err = client.New(cfg); err != nil {
		return err
	}
	if c.kube, err = kubernetes.NewForConfig(cfg); err != nil {
		return err
	}
	if c.dynamic, err = dynamic.NewForConfig(cfg); err != nil {
		return err
	}
	// The build of the pods, by which the webhooks know them, follows from the program.
	launcher, err := controller.Detect(ctx, pod.Launcher{Image: o.image}, "", c.kube.Discovery())
	if err != nil {
		return err
	}
	p, err := add(mgr, c, launcher, o.namespace, hooks.guarded, metrics.Registry)
	if err != nil {
		return err
	}
	if err := hooks.add(mgr, cfg, p, o.namespace); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
