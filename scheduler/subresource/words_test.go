package subresource_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// KubeVirt's client reads the answer as it comes, and then shows the words of a 500 alone.
func TestWhyTheGuestIsNotDescribedReachesEveryClient(t *testing.T) {
	w := newWorld(t, running())
	tr := &http.Transport{TLSClientConfig: config(w.front.issue(t, "aggregator"))}
	defer tr.CloseIdleConnections()
	for accept, want := range map[string]struct {
		code int
		is   string
	}{"application/json": {409, "application/json"}, "application/json, */*": {500, "text/plain; charset=utf-8"}, "": {500, "text/plain; charset=utf-8"}} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+api+"/namespaces/a/virtualmachineinstances/x/guestosinfo", http.NoBody)
		require.NoError(t, err)
		r.Header = alice()
		r.Header.Set("Accept", accept)
		a, err := tr.RoundTrip(r)
		require.NoError(t, err)
		b, err := io.ReadAll(a.Body)
		require.NoError(t, err)
		require.NoError(t, a.Body.Close())
		require.Equal(t, want.code, a.StatusCode, accept)
		require.Equal(t, want.is, a.Header.Get("Content-Type"))
		require.Contains(t, string(b), "VMI does not have guest agent connected")
	}
}
