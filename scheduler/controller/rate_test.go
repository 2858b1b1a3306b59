package controller

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// Fifty VMIs per second are six requests each. Where a request takes a tenth of a second,
// thirty are under way at any time.
func TestASlowAPIServerDoesNotLimitHowManyVMIsAreWorkedOn(t *testing.T) {
	t.Parallel()
	const atOnce = 30
	var all []vmi.Object
	for i := range 2 * atOnce {
		v := vmitest.New(vmitest.WithName(fmt.Sprint("v", i)))
		v.UID, v.Finalizers = "", nil
		all = append(all, v)
	}
	cfg := fake.New(all...).Config()
	underWay, enough := 0, make(chan struct{})
	reached := sync.OnceFunc(func() { close(enough) })
	var mu sync.Mutex
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return counted(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch {
				mu.Lock()
				if underWay++; underWay == atOnce {
					reached()
				}
				mu.Unlock()
				select {
				case <-enough:
				case <-r.Context().Done(): // a write that takes too long is repeated, and counted again
					mu.Lock()
					underWay--
					mu.Unlock()
				}
			}
			return next.RoundTrip(r)
		})
	})
	api, err := client.New(cfg)
	require.NoError(t, err)
	c, err := New(Config{Client: api, Kube: kubefake.NewClientset(), Launcher: rendering})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()
	select {
	case <-enough:
	case <-time.After(time.Minute):
		mu.Lock()
		t.Errorf("%d writes are under way, not %d", underWay, atOnce)
		mu.Unlock()
	}
	cancel()
	require.NoError(t, <-ended)
}
