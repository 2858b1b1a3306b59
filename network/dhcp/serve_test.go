package dhcp

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/network/networktest"
)

func TestServeWaitsForItsLinkAndEndsWithItsContext(t *testing.T) {
	ns := networktest.Namespace(t)
	ctx, stop := context.WithCancel(t.Context())
	var log testenv.Output
	ended := make(chan error, 1)
	go networktest.In(t, ns, func() {
		ended <- Server{Resolver: resolver, Logger: slog.New(slog.NewTextHandler(&log, nil))}.Serve(ctx, offer)
	})
	require.Eventually(t, func() bool { return bytes.Contains([]byte(log.String()), []byte("cannot serve DHCP yet")) }, 5*time.Second, time.Millisecond)
	networktest.IP(t, ns, "link add k6t-eth0 type bridge")
	require.Eventually(t, func() bool { return bytes.Contains([]byte(log.String()), []byte("serving DHCP")) }, 5*time.Second, time.Millisecond)
	stop()
	require.NoError(t, <-ended)
}

func TestServeRefusesAnOfferThatIsNotComplete(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, Server{}.Serve(t.Context(), network.Offer{Link: "k6t-eth0"}), "is not complete")
}
