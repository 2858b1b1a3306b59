package ops

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// The rate of requests that a component may send. It is high, because the work
// itself needs few: a lower limit would only add to the time that a VMI takes to
// start.
const (
	requestsPerSecond = 200
	requestsBurst     = 400
)

// Kubernetes is the configuration of an API client for the named component:
// from the kubeconfig file at path, or from the pod's service account if path is
// empty. Its requests are counted in reg.
func Kubernetes(path, component string, reg prometheus.Registerer) (*rest.Config, error) {
	load := rest.InClusterConfig
	if path != "" {
		load = func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", path) }
	}
	cfg, err := load()
	if err != nil {
		return nil, fmt.Errorf("configure the API client: %w", err)
	}
	cfg.UserAgent = component
	cfg.QPS, cfg.Burst = requestsPerSecond, requestsBurst
	cfg.Wrap(CountRequests(reg))
	return cfg, nil
}
