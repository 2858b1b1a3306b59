// Command virt-controller makes pods for machines: see scheduler/controller.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/podvisor/podvisor/internal/ops"
	"github.com/podvisor/podvisor/scheduler/controller"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/config"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "virt-controller:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig file; default: the pod's service account")
	image := flag.String("launcher-image", os.Getenv("LAUNCHER_IMAGE"), "image of the launcher pods (LAUNCHER_IMAGE)")
	emulate := flag.Bool("allow-emulation", os.Getenv("ALLOW_EMULATION") == "true", "run guests without hardware virtualization (ALLOW_EMULATION)")
	disks := flag.String("container-disks", os.Getenv("CONTAINER_DISKS"), "auto, image-volume or init-copy (CONTAINER_DISKS)")
	namespace := flag.String("namespace", cmp.Or(os.Getenv("POD_NAMESPACE"), "kubevirt"), "namespace of the lease (POD_NAMESPACE)")
	listen := flag.String("listen", ":8443", "address of the health and metrics endpoint")
	level := flag.String("log-level", "info", "debug, info, warn or error")
	flag.Parse()

	s, err := ops.Begin(ops.Flags{Component: "virt-controller", Kubeconfig: *kubeconfig, LogLevel: *level, Alone: true,
		Pick: func(c config.Config) config.Component { return c.Controller }})
	if err != nil {
		return err
	}
	klog.SetSlogLogger(s.Log)
	leading := prometheus.NewGauge(prometheus.GaugeOpts{Name: "kubevirt_virt_controller_leading_status", Help: "1 if this process is the one that works."})
	s.Metrics.MustRegister(leading)
	machines, err := client.New(s.Kubernetes)
	if err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfig(s.Kubernetes)
	if err != nil {
		return err
	}
	urgent, err := kubernetes.NewForConfig(s.Urgent)
	if err != nil {
		return err
	}
	way, err := controller.ContainerDisks(*disks, kube.Discovery())
	if err != nil {
		return err
	}
	c, err := controller.New(controller.Config{Client: machines, Kube: kube, Logger: s.Log, Settings: s.Settings, Home: *namespace,
		Pods: pod.Config{Image: *image, AllowEmulation: *emulate, ContainerDisks: way}})
	if err != nil {
		return err
	}
	host, _ := os.Hostname()
	lease := controller.Lease{Kube: urgent, Namespace: *namespace, Name: "virt-controller", Identity: host,
		OnChange: func(leads bool) { leading.Set(map[bool]float64{true: 1}[leads]) }}
	e := ops.Endpoint{Addr: *listen, Metrics: s.Metrics, Ready: c.Ready, Facts: s.Settings.Facts, Logger: s.Log}
	return ops.Together(ctx, s.Settings.Run,
		func(ctx context.Context) error { return ops.Serve(ctx, e) },
		func(ctx context.Context) error { return controller.Lead(ctx, lease, c.Run) })
}
