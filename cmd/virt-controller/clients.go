package main

import (
	"os"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/podvisor/podvisor/handler/stream"
	"github.com/podvisor/podvisor/internal/ops"
	"github.com/podvisor/podvisor/scheduler/guest"
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
	// answerVMIs, answerKube and answerDynamic are for the webhooks.
	answerVMIs    *client.Client
	answerKube    kubernetes.Interface
	answerDynamic dynamic.Interface
	// verbVMIs and verbKube are for the verbs of users, who decide how many there are.
	verbVMIs *client.Client
	verbKube kubernetes.Interface
	// guests reach the launchers, for the loops and the verbs.
	guests guest.Guests
	// handlers reach the handlers of nodes, which move VMIs.
	handlers handlers
	// lease renews the lease of the leader.
	lease kubernetes.Interface
}

func newClients(s *ops.Setup, namespace string) (c clients, err error) {
	if c.vmis, err = s.Client(s.Kubernetes); err != nil {
		return c, err
	}
	if c.kube, err = kubernetes.NewForConfig(ops.Binary(s.Kubernetes)); err != nil {
		return c, err
	}
	if c.dynamic, err = dynamic.NewForConfig(s.Kubernetes); err != nil {
		return c, err
	}
	if c.answerVMIs, err = s.Client(s.Urgent); err != nil {
		return c, err
	}
	if c.answerKube, err = kubernetes.NewForConfig(ops.Binary(s.Urgent)); err != nil {
		return c, err
	}
	if c.answerDynamic, err = dynamic.NewForConfig(s.Urgent); err != nil {
		return c, err
	}
	if c.verbVMIs, err = s.Client(s.Urgent); err != nil {
		return c, err
	}
	if c.verbKube, err = kubernetes.NewForConfig(ops.Binary(s.Urgent)); err != nil {
		return c, err
	}
	dialer := reach(s, c.verbKube.CoreV1(), namespace)
	c.guests, c.handlers = guest.Guests{Nodes: dialer}, handlers{dialer}
	c.lease, err = kubernetes.NewForConfig(ops.Binary(s.Urgent))
	return c, err
}

// reach is the way to the handlers and to the launchers of VMIs, for the loops and the verbs.
// The pod says in its environment who it is: the tokens for the handlers are bound to it.
func reach(s *ops.Setup, core corev1.CoreV1Interface, namespace string) *stream.Dialer {
	tokens := &stream.Tokens{Accounts: core.ServiceAccounts(namespace), Account: "virt-controller",
		PodName: os.Getenv("POD_NAME"), PodUID: types.UID(os.Getenv("POD_UID"))}
	return stream.NewDialer(stream.DialerConfig{
		Nodes: core.Nodes(), Handlers: core.Pods(namespace), Token: tokens.Token, Refused: tokens.Forget, Logger: s.Log,
	})
}
