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
	arrived, enough := 0, make(chan struct{})
	var mu sync.Mutex
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return counted(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch {
				mu.Lock()
				if arrived++; arrived == atOnce {
					close(enough)
				}
				mu.Unlock()
				select {
				case <-enough:
				case <-r.Context().Done():
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
	case <-time.After(9 * time.Second): // less than a write may take
		mu.Lock()
		t.Errorf("%d writes are under way, not %d", arrived, atOnce)
		mu.Unlock()
	}
	cancel()
	require.NoError(t, <-ended)
}
