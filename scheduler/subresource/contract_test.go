package subresource_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/contract"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// aggregated sends the verbs to the server, as an API server that has authenticated alice
// does, and all else to the store.
type aggregated struct {
	*world
	verbs *http.Transport
}

func (a aggregated) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(r.URL.Path, "/apis/"+vmi.SubresourceGroup+"/") {
		return a.store.RoundTrip(r)
	}
	r = r.Clone(r.Context())
	scheme, host, _ := strings.Cut(a.url, "://")
	r.URL.Scheme, r.URL.Host = scheme, host
	for name, values := range alice() {
		r.Header[name] = values
	}
	return a.verbs.RoundTrip(r)
}

func TestTheServerKeepsTheContractOfTheFake(t *testing.T) {
	w := newWorld(t)
	a := aggregated{w, &http.Transport{TLSClientConfig: config(w.front.issue(t, "aggregator"))}}
	defer a.verbs.CloseIdleConnections()
	cfg := w.store.Config()
	cfg.Transport = a
	c, err := client.New(cfg)
	require.NoError(t, err)
	contract.RunVerbs(t, c, "default")
}
