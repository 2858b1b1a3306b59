package main

import (
	"k8s.io/client-go/kubernetes"

	"github.com/podvisor/podvisor/internal/ops"
	"github.com/podvisor/podvisor/vmi/client"
)

// clients are the ways to the API server. Each has a limit of requests of its
// own, so that none waits behind another's.
type clients struct {
	// machines and kube are for the work.
	machines *client.Client
	kube     kubernetes.Interface
	// answerMachines and answerKube are for what the API server asks.
	answerMachines *client.Client
	answerKube     kubernetes.Interface
	// lease keeps the lead.
	lease kubernetes.Interface
}

func newClients(s *ops.Setup) (c clients, err error) {
	if c.machines, err = client.New(s.Kubernetes); err != nil {
		return c, err
	}
	if c.kube, err = kubernetes.NewForConfig(s.Kubernetes); err != nil {
		return c, err
	}
	if c.answerMachines, err = client.New(s.Urgent); err != nil {
		return c, err
	}
	if c.answerKube, err = kubernetes.NewForConfig(s.Urgent); err != nil {
		return c, err
	}
	c.lease, err = kubernetes.NewForConfig(s.Urgent)
	return c, err
}
