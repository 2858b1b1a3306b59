package stream

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/podvisor/podvisor/launcher/protocol"
)

// void makes the tokens that were issued void, as a new key of the API server's does.
func (a *api) void() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.issued = map[string]authenticationv1.TokenReviewStatus{}
}

func TestATokenThatAHandlerRefusesIsReplacedOnce(t *testing.T) {
	t.Parallel()
	r := newRoad(t)
	require.NoError(t, r.dialer.Call(t.Context(), on("n1"), "pause", nil, nil))
	require.Equal(t, 1, r.requests)

	// Another handler remembers no review.
	r.stop()
	r.void()
	r.serve(r.addr)
	conn, err := r.dialer.Stream(t.Context(), on("n1"), "console")
	require.NoError(t, err)
	defer conn.Close()
	echoes(t, conn, "hello")
	require.Equal(t, 2, r.requests, "a new token")
	require.NoError(t, r.dialer.Call(t.Context(), on("n1"), "pause", nil, nil))
	require.Equal(t, 2, r.requests, "which is used further")
}

func TestAHandlerThatRefusesEveryTokenIsAskedTwice(t *testing.T) {
	t.Parallel()
	var asked []string
	r := newRoad(t, func(c *ServerConfig) {
		c.Admit = func(_ context.Context, token, _ string) error {
			asked = append(asked, token)
			return fmt.Errorf("%w: of another cluster", ErrDenied)
		}
	})
	err := r.dialer.Call(t.Context(), on("n1"), "pause", nil, nil)
	requireRefusal(t, err, protocol.ReasonUnavailable)
	require.ErrorContains(t, err, "of another cluster")
	require.Equal(t, 2, r.requests)
	require.Equal(t, []string{signed("token-1", user, "virt-controller-1", Audience("n1")), signed("token-2", user, "virt-controller-1", Audience("n1"))}, asked)
}

func TestForgetDropsNoOtherToken(t *testing.T) {
	t.Parallel()
	known := &Tokens{known: map[string]*issued{"a": {token: "new", until: time.Now().Add(time.Hour)}}, PodName: "p", PodUID: "u"}
	known.Forget("a", "old")
	token, err := known.Token(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, "new", token)
}
