package main

import (
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/podvisor/podvisor/internal/ops"
	"github.com/podvisor/podvisor/vmi/client"
)

// newClients are the clients of the API server, for VMIs and for nodes and events.
func newClients(s *ops.Setup) (*client.Client, *corev1.CoreV1Client, error) {
	instances, err := s.Client(s.Kubernetes)
	if err != nil {
		return nil, nil, err
	}
	kube, err := corev1.NewForConfig(ops.Binary(s.Kubernetes))
	return instances, kube, err
}
