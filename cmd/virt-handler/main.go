// Command virt-handler handles the VMIs of one node: see handler/controller.
package main

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/podvisor/podvisor/handler/controller"
	"github.com/podvisor/podvisor/handler/host"
	"github.com/podvisor/podvisor/handler/scrape"
	"github.com/podvisor/podvisor/handler/stream"
	"github.com/podvisor/podvisor/internal/ops"
	"github.com/podvisor/podvisor/vmi/config"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(program.Status(run(ctx, os.Args[1:])))
}

func run(ctx context.Context, args []string) error {
	var flags flag.FlagSet
	labels := labelFlags(&flags)
	name := flags.String("node-name", os.Getenv("NODE_NAME"), "name of this node (NODE_NAME)")
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig file; default: the pod's service account")
	pods := flags.String("kubelet-pods", "/var/lib/kubelet/pods", "the kubelet's folder of pods")
	plugins := flags.String("device-plugins", "/var/lib/kubelet/device-plugins", "the kubelet's folder of device plugins")
	cdi := flags.String("cdi", "/var/run/cdi", "the container runtime's folder of CDI specifications")
	kvm := flags.String("kvm", "auto", "whether to offer KVM: auto (if guests can run on it), yes or no")
	listen := flags.String("listen", ":8443", "address of the health and metrics endpoint")
	streams := flags.String("streams", ":8186", "address of the streams of guests, which virt-controller opens")
	level := flags.String("log-level", "info", "debug, info, warn or error")
	if err := program.ParseFlags(&flags, args); err != nil {
		return err
	}
	s, err := ops.Begin(ops.Flags{Component: "virt-handler", Kubeconfig: *kubeconfig, LogLevel: *level, Pick: func(c config.Config) config.Component { return c.OnNode(*name) }})
	if err != nil {
		return err
	}
	klog.SetSlogLogger(ops.WithoutRepeats(s.Log))
	instances, kube, err := newClients(s)
	if err != nil {
		return err
	}
	cert, err := stream.NewCertificate(time.Now())
	if err != nil {
		return err
	}
	c, err := controller.New(controller.Config{Node: *name, Client: instances, Events: kube, KubeletPods: *pods, Certificate: cert,
		Settings: s.Settings, Metrics: s.Metrics, Logger: s.Log})
	if err != nil {
		return err
	}
	server, annotations, err := newStreams(s.Urgent, c, cert, *name, os.Getenv("POD_NAMESPACE"), s.Log)
	if err != nil {
		return err
	}
	s.Metrics.MustRegister(scrape.New(scrape.Config{Guests: c, Logger: s.Log}))
	n := host.Node{Name: *name, Nodes: kube.Nodes(), KVM: *kvm, PluginDir: *plugins, CDIDir: *cdi, Labels: *labels, Annotations: annotations,
		Settings: s.Settings, Uninstalled: host.Uninstalled(s.Metadata, os.Getenv("POD_NAMESPACE"), "virt-handler"), Logger: s.Log}
	e := ops.Endpoint{Addr: *listen, Metrics: s.Metrics, Guard: s.Guard.Protect, Ready: c.Ready, Facts: s.Settings.Facts, Logger: s.Log}
	ctx, end := untilSettled(ctx, c.Settle)
	defer end()
	return ops.Together(ctx, s.Settings.Run, c.Run, n.Run,
		func(ctx context.Context) error { return server.ListenAndServe(ctx, *streams) },
		func(ctx context.Context) error { return ops.Serve(ctx, e) })
}
