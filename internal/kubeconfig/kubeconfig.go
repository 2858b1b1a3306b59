// Package kubeconfig finds the cluster that a program of a user talks to, as kubectl does.
package kubeconfig

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Load reads KUBECONFIG or ~/.kube/config, and in a pod the pod's service account. It
// returns the namespace that is given, or that of the current context if it is empty.
func Load(namespace string) (*rest.Config, string, error) {
	overrides := &clientcmd.ConfigOverrides{}
	overrides.Context.Namespace = namespace
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), overrides)
	cfg, err := loader.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("find a cluster: %w", err)
	}
	namespace, _, err = loader.Namespace()
	return cfg, namespace, err
}
