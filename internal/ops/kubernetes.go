package ops

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"
)

// The rate of requests that a component may send. It is high, because the work
// itself needs few: a VMI that starts costs virt-controller six, with its events. A
// lower limit would only add to the time that VMIs take to start; the API server shares
// itself out among its clients (API Priority and Fairness).
const (
	requestsPerSecond = 1000
	requestsBurst     = 2000
)

// Binary is the configuration for clients of Kubernetes' own kinds, which the API server
// encodes in protobuf: that costs both sides a fraction of JSON, and other clients of the
// API server share what it has encoded. Kinds of definitions have no such form.
func Binary(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.ContentType = runtime.ContentTypeProtobuf
	c.AcceptContentTypes = strings.Join([]string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON}, ",")
	return c
}

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
	rereadToken(cfg)
	cfg.UserAgent = component
	// As those of Kubernetes' own components: on the network of a cluster it costs more
	// than it saves.
	cfg.DisableCompression = true
	cfg.QPS, cfg.Burst = requestsPerSecond, requestsBurst
	cfg.Wrap(CountRequests(reg))
	return cfg, nil
}

// rereadToken makes clients of the configuration read the token of a file anew after it was
// refused. By itself client-go reads it once a minute, for which nothing would work.
func rereadToken(cfg *rest.Config) {
	if cfg.BearerTokenFile == "" {
		return
	}
	cfg.Wrap(transport.ResettableTokenSourceWrapTransport(transport.NewCachedFileTokenSource(cfg.BearerTokenFile)))
	cfg.BearerToken, cfg.BearerTokenFile = "", ""
}
