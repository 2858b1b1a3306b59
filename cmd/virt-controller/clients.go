package main

import (
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/podvisor/podvisor/internal/ops"
	"github.com/podvisor/podvisor/vmi/client"
)

// clients are the clients of the API server. Each has a limit of requests of its
// own, so that the requests of one do not delay those of another.
type clients struct {
	// vmis and kube are for the loops.
	vmis *client.Client
	kube kubernetes.Interface
	// dynamic is for DataVolumes.
	dynamic dynamic.Interface
	// answerVMIs and answerKube are for the webhooks.
	answerVMIs *client.Client
	answerKube kubernetes.Interface
	// verbVMIs and verbKube are for the verbs of users, who decide how many there are.
	verbVMIs *client.Client
	verbKube kubernetes.Interface
	// lease renews the lease of the leader.
	lease kubernetes.Interface
}

func newClients(s *ops.Setup) (c clients, err error) {
	if c.vmis, err = client.New(s.Kubernetes); err != nil {
		return c, err
	}
	if c.kube, err = kubernetes.NewForConfig(s.Kubernetes); err != nil {
		return c, err
	}
	if c.dynamic, err = dynamic.NewForConfig(s.Kubernetes); err != nil {
		return c, err
	}
	if c.answerVMIs, err = client.New(s.Urgent); err != nil {
		return c, err
	}
	if c.answerKube, err = kubernetes.NewForConfig(s.Urgent); err != nil {
		return c, err
	}
	if c.verbVMIs, err = client.New(s.Urgent); err != nil {
		return c, err
	}
	if c.verbKube, err = kubernetes.NewForConfig(s.Urgent); err != nil {
		return c, err
	}
	c.lease, err = kubernetes.NewForConfig(s.Urgent)
	return c, err
}
