package ops

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/transport"

	"github.com/podvisor/podvisor/internal/series"
)

// Requests is the metric that counts the requests to the API server.
var Requests = series.Info{
	Name: "kubevirt_rest_client_requests_total", Type: series.Counter, Labels: []string{"method", "resource", "subresource", "code"},
	Help: "Requests to the API server, by method, resource, subresource and status code.",
}

// CountRequests makes a wrapper for the transport of an API client that counts
// every answered request in reg as kubevirt_rest_client_requests_total, by
// method, resource, subresource and status code. A request without an answer has
// the code "error".
func CountRequests(reg prometheus.Registerer) transport.WrapperFunc {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: Requests.Name, Help: Requests.Help}, Requests.Labels)
	reg.MustRegister(c)
	return func(next http.RoundTripper) http.RoundTripper { return counter{next, c} }
}

type counter struct {
	next  http.RoundTripper
	total *prometheus.CounterVec
}

func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.next.RoundTrip(r)
	code := "error"
	if err == nil {
		code = strconv.Itoa(resp.StatusCode)
	}
	resource, sub := resourceOf(r.URL.Path)
	c.total.WithLabelValues(r.Method, resource, sub, code).Inc()
	return resp, err
}

// resourceOf is the resource and the subresource that an API path names. The
// paths are /api/v1/… and /apis/<group>/<version>/…, followed by
// namespaces/<name>/ where the resource has a namespace, and by
// <resource>/<name>/<subresource>.
func resourceOf(path string) (resource, subresource string) {
	p := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(p) > 2 && p[0] == "api":
		p = p[2:]
	case len(p) > 3 && p[0] == "apis":
		p = p[3:]
	default:
		return "", ""
	}
	if len(p) > 2 && p[0] == "namespaces" && p[2] != "status" && p[2] != "finalize" {
		p = p[2:]
	}
	if len(p) > 2 {
		return p[0], p[2]
	}
	return p[0], ""
}
