package main

import (
	"log/slog"
	"os"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/podvisor/podvisor/handler/stream"
)

// newNodes opens streams of VMIs at the handlers of their nodes. It asks the API server
// for nothing before a stream is asked for.
func newNodes(kube kubernetes.Interface, namespace string, log *slog.Logger) *stream.Dialer {
	tokens := &stream.Tokens{
		Accounts: kube.CoreV1().ServiceAccounts(namespace), Account: "virt-controller",
		PodName: os.Getenv("POD_NAME"), PodUID: types.UID(os.Getenv("POD_UID")),
	}
	return stream.NewDialer(stream.DialerConfig{
		Nodes: kube.CoreV1().Nodes(), Handlers: kube.CoreV1().Pods(namespace), Token: tokens.Token, Logger: log,
	})
}
