package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/podvisor/podvisor/scheduler/admission"
	"github.com/podvisor/podvisor/scheduler/controller"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// webhooks are those of virt-controller. One of them permits the pods that this program
// makes, and knows them by the program's build: no other program can answer it.
type webhooks struct{ serving *admission.Serving }

// server is the manager's webhook server at the address. Its certificate is the one that
// virt-certificates keeps.
func (w *webhooks) server(addr string) (webhook.Server, error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("address of the webhooks: %w", err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("address of the webhooks: %w", err)
	}
	return webhook.NewServer(webhook.Options{Host: host, Port: port, TLSOpts: []func(*tls.Config){func(c *tls.Config) {
		c.GetCertificate = w.serving.Certificate
	}}}), nil
}

// guarded reports whether the deletion of Podvisor is refused while there are VMIs.
func (w *webhooks) guarded() bool { return w.serving.Guarded() }

// add adds the webhooks to the manager. Each replica serves them. Their clients are their
// own, so that no review waits behind the requests of the loops.
func (w *webhooks) add(mgr ctrl.Manager, cfg *rest.Config, p podvisor, namespace string) error {
	vmis, err := client.New(cfg)
	if err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	networks, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return err
	}
	definitions, err := metadata.NewForConfig(cfg)
	if err != nil {
		return err
	}
	log := slog.New(logr.ToSlogHandler(mgr.GetLogger().WithName("webhooks")))
	w.serving, err = admission.NewServing(admission.ServingConfig{Kube: kube, Namespace: namespace, Changed: p.loops.QueueAll, Logger: log})
	if err != nil {
		return err
	}
	all := admission.All{
		Settings: p.settings, Kube: kube, VMIs: vmis, Metadata: definitions, Cached: p.loops.Cached, Serving: w.serving, Namespace: namespace, Logger: log,
		Launchers: admission.Launchers{
			Rendering: p.loops.Rendering, Kube: kube, Creating: p.loops.Creating, Cached: p.loops.AsRendered,
			Facts: func(ctx context.Context, v *vmi.VirtualMachineInstance) (pod.Facts, error) {
				return controller.Facts(ctx, kube, networks, v)
			},
			CachedPod: func(namespace, name string) *corev1.Pod {
				p, _ := p.loops.Cached(namespace, name)
				return p
			},
		},
	}
	for path, h := range all.Handlers() {
		mgr.GetWebhookServer().Register(path, h)
	}
	return errors.Join(
		mgr.Add(everywhere(w.serving.Run)),
		mgr.AddReadyzCheck("webhooks", func(*http.Request) error { return w.serving.Ready() }),
	)
}
