// Command virt-controller makes pods for VMIs: see scheduler/controller.
package main

import (
	"cmp"
	"context"
	"flag"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"

	"github.com/podvisor/podvisor/internal/ops"
	"github.com/podvisor/podvisor/internal/scheduler/leader"
	"github.com/podvisor/podvisor/scheduler/admission"
	"github.com/podvisor/podvisor/scheduler/controller"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi/config"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == certificates.Name {
		os.Exit(certificates.Status(runCertificates(ctx, os.Args[2:])))
	}
	os.Exit(program.Status(run(ctx, os.Args[1:])))
}

func run(ctx context.Context, args []string) error {
	var flags flag.FlagSet
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig file; default: the pod's service account")
	image := flags.String("launcher-image", os.Getenv("LAUNCHER_IMAGE"), "image of the launcher pods (LAUNCHER_IMAGE)")
	full := flags.String("launcher-full-image", os.Getenv("LAUNCHER_FULL_IMAGE"), "that for UEFI and TPM (LAUNCHER_FULL_IMAGE); default: launcher-image with -full before the tag")
	emulate := flags.Bool("allow-emulation", os.Getenv("ALLOW_EMULATION") == "true", "run guests without hardware virtualization (ALLOW_EMULATION)")
	disks := flags.String("container-disks", os.Getenv("CONTAINER_DISKS"), "auto, image-volume or init-copy (CONTAINER_DISKS)")
	fields := flags.String("pod-fields", os.Getenv("POD_FIELDS"), "fields of launcher pods that the admission of others may set, with commas between them (POD_FIELDS)")
	namespace := flags.String("namespace", cmp.Or(os.Getenv("POD_NAMESPACE"), "kubevirt"), "namespace of the lease and the certificate (POD_NAMESPACE)")
	listen := flags.String("listen", ":8443", "address of the webhooks, health and metrics")
	level := flags.String("log-level", "info", "debug, info, warn or error")
	if err := program.ParseFlags(&flags, args); err != nil {
		return err
	}
	s, err := ops.Begin(ops.Flags{Component: "virt-controller", Kubeconfig: *kubeconfig, LogLevel: *level, Pick: func(c config.Config) config.Component { return c.Controller }})
	if err != nil {
		return err
	}
	klog.SetSlogLogger(ops.WithoutRepeats(s.Log))
	api, err := newClients(s, *namespace)
	if err != nil {
		return err
	}
	var serving *admission.Serving
	l := leader.New(leader.Config{
		Launcher: pod.Launcher{Image: *image, FullImage: *full, AllowEmulation: *emulate}, ContainerDisks: *disks, Version: api.kube.Discovery(), Logger: s.Log,
		Make: func(p pod.Launcher) (*controller.Controller, error) {
			return controller.New(controller.Config{Client: api.vmis, Kube: api.kube, Dynamic: api.dynamic, Guests: api.guests, Handlers: api.handlers, Launcher: p, Home: *namespace,
				Settings: s.Settings, Guarded: func() bool { return serving.Guarded() }, Metrics: s.Metrics, Logger: s.Log})
		},
		Lease: controller.Lease{Kube: api.lease, Namespace: *namespace, Name: "virt-controller", Identity: hostname(), Metrics: s.Metrics},
	})
	if serving, err = admission.NewServing(admission.ServingConfig{Kube: api.answerKube, Namespace: *namespace, Changed: l.QueueAll, Logger: s.Log}); err != nil {
		return err
	}
	verbs, err := subresources(s, api)
	if err != nil {
		return err
	}
	reviews := admission.All{Settings: s.Settings, Kube: api.answerKube, VMIs: api.answerVMIs, Metadata: s.Metadata, Cached: l.Cached,
		Launchers: launchers(api, l, *fields), Serving: serving, Namespace: *namespace, Logger: s.Log}
	e := ops.Endpoint{Addr: *listen, Metrics: s.Metrics, Guard: s.Guard.Protect, Ready: ops.All(l.Ready, serving.Ready), Facts: s.Settings.Facts, Logger: s.Log,
		Handlers: ops.Handlers(reviews.Handlers(), verbs.Handlers()), Certificate: serving.Certificate}
	return ops.Together(ctx, s.Settings.Run, serving.Run, verbs.Run, l.Run, ops.ReturnMemory,
		func(ctx context.Context) error { return ops.Serve(ctx, e) })
}
