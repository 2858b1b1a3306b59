package dhcp

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/network/networktest"
)

// journal is a log that can be read while it is written.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

func TestServeWaitsForItsLinkAndEndsWithItsContext(t *testing.T) {
	ns := networktest.Namespace(t)
	ctx, stop := context.WithCancel(t.Context())
	var log journal
	ended := make(chan error, 1)
	go networktest.In(t, ns, func() {
		ended <- Serve(ctx, offer, resolver, slog.New(slog.NewTextHandler(&log, nil)))
	})
	require.Eventually(t, func() bool { return bytes.Contains([]byte(log.String()), []byte("cannot serve DHCP yet")) }, 5*time.Second, time.Millisecond)
	networktest.IP(t, ns, "link add k6t-eth0 type bridge")
	require.Eventually(t, func() bool { return bytes.Contains([]byte(log.String()), []byte("serving DHCP")) }, 5*time.Second, time.Millisecond)
	stop()
	require.NoError(t, <-ended)
}

func TestServeRefusesAnOfferThatIsNotComplete(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, Serve(t.Context(), network.Offer{Link: "k6t-eth0"}, Resolver{}, nil), "is not complete")
}
