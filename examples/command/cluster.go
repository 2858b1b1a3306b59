package command

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/podvisor/podvisor/vmi/client"
)

// Cluster is a client of the cluster of KUBECONFIG or ~/.kube/config, and in a pod of
// that of the pod. In is the namespace, or that of the current context if it is empty.
func Cluster(namespace string) (c *client.Client, in string, err error) {
	overrides := &clientcmd.ConfigOverrides{}
	overrides.Context.Namespace = namespace
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), overrides)
	cfg, err := loader.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("find a cluster: %w", err)
	}
	if in, _, err = loader.Namespace(); err != nil {
		return nil, "", err
	}
	c, err = client.New(cfg)
	return c, in, err
}
