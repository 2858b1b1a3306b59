package main

import (
	"cmp"
	"context"
	"flag"
	"os"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"

	"github.com/podvisor/podvisor/internal/command"
	"github.com/podvisor/podvisor/internal/ops"
	"github.com/podvisor/podvisor/internal/scheduler/authority"
)

// certificates is a program of its own in the same file: it runs with another account
// and serves nothing.
var certificates = command.Program{
	Name: "certificates",
	Usage: `usage: virt-controller certificates [FLAG...]

Keeps the authority of the certificate that virt-controller serves with: see
internal/scheduler/authority. It listens nowhere. A flag that is not given has the value of the
environment variable in brackets.
`,
}

func runCertificates(ctx context.Context, args []string) error {
	var flags flag.FlagSet
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig file; default: the pod's service account")
	namespace := flags.String("namespace", cmp.Or(os.Getenv("POD_NAMESPACE"), "kubevirt"), "namespace of the Secrets and of virt-controller (POD_NAMESPACE)")
	level := flags.String("log-level", "info", "debug, info, warn or error")
	if err := certificates.ParseFlags(&flags, args); err != nil {
		return err
	}
	log, _, err := ops.Logger(os.Stderr, *level)
	if err != nil {
		return err
	}
	klog.SetSlogLogger(ops.WithoutRepeats(log))
	cfg, err := ops.Kubernetes(*kubeconfig, "virt-certificates", ops.Registry())
	if err != nil {
		return err
	}
	// It has little to do, whatever is written to the Secret of virt-controller.
	cfg.QPS, cfg.Burst = 5, 20
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	meta, err := metadata.NewForConfig(cfg)
	if err != nil {
		return err
	}
	registrations, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return err
	}
	a, err := authority.New(authority.Config{Kube: kube, Metadata: meta, Dynamic: registrations, Namespace: *namespace, Logger: log})
	if err != nil {
		return err
	}
	return a.Run(ctx)
}
