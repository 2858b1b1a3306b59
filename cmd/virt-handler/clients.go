package main

import (
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/internal/ops"
	"github.com/podvisor/podvisor/vmi/client"
)

// newClients are the clients of the API server, for VMIs and for nodes and events.
func newClients(cfg *rest.Config) (*client.Client, *corev1.CoreV1Client, error) {
	instances, err := client.New(cfg)
	if err != nil {
		return nil, nil, err
	}
	kube, err := corev1.NewForConfig(ops.Binary(cfg))
	return instances, kube, err
}
