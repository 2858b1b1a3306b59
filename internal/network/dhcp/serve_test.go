package dhcp

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/network"
)

func TestServeWaitsForItsLinkAndEndsWithItsContext(t *testing.T) {
	ns := networktest.Namespace(t)
	ctx, stop := context.WithCancel(t.Context())
	var log testenv.Output
	ended, listening := make(chan error, 1), make(chan struct{})
	go networktest.In(t, ns, func() {
		ended <- Server{Resolver: resolver, Logger: slog.New(slog.NewTextHandler(&log, nil)), Listening: func() { close(listening) }}.Serve(ctx, offer)
	})
	require.Eventually(t, func() bool { return bytes.Contains([]byte(log.String()), []byte("cannot serve DHCP yet")) }, time.Minute, time.Millisecond)
	select {
	case <-listening:
		t.Fatal("there is no link yet")
	default:
	}
	networktest.IP(t, ns, "link add k6t-eth0 type bridge")
	<-listening
	require.Eventually(t, func() bool { return bytes.Contains([]byte(log.String()), []byte("serving DHCP")) }, time.Minute, time.Millisecond)
	stop()
	require.NoError(t, <-ended)
}

func TestServeRefusesAnOfferThatIsNotComplete(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, Server{}.Serve(t.Context(), network.Offer{Link: "k6t-eth0"}), "is not complete")
}

// A write to a tap device that is down fails.
func TestServe6AdvertisesAsSoonAsItsTapDeviceIsUp(t *testing.T) {
	ns := networktest.Namespace(t)
	networktest.IP(t, ns, "tuntap add ra0 mode tap")
	ctx, stop := context.WithCancel(t.Context())
	var log testenv.Output
	ended, listening := make(chan error, 1), make(chan struct{})
	go networktest.In(t, ns, func() {
		ended <- Server{Resolver: resolver, Logger: slog.New(slog.NewTextHandler(&log, nil)), Listening: func() { close(listening) }}.Serve6(ctx, offer6)
	})
	<-listening
	require.Eventually(t, func() bool { return bytes.Contains([]byte(log.String()), []byte("input/output error")) }, time.Minute, time.Millisecond)
	networktest.IP(t, ns, "link set ra0 up")
	came := networktest.Watch(t, ns, "ra0") // the first of them, or the one 4 s after it
	require.Eventually(t, func() bool { return came.Has(advertisement(offer6, resolver, allNodes)) }, time.Minute, time.Millisecond)
	stop()
	require.NoError(t, <-ended)
}
