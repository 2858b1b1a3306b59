package dhcp

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/stretchr/testify/require"
)

// sink takes every packet.
type sink struct{ net.PacketConn }

func (sink) WriteTo(b []byte, _ net.Addr) (int, error) { return len(b), nil }
func (sink) SetDeadline(time.Time) error               { return nil }

func TestAGuestThatAsksAgainIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	h := handler(offer, Resolver{}, slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	mac, err := net.ParseMAC(offer.MAC)
	require.NoError(t, err)
	discover, err := dhcpv4.NewDiscovery(mac)
	require.NoError(t, err)
	stranger, err := dhcpv4.NewDiscovery(net.HardwareAddr{2, 9, 9, 9, 9, 9})
	require.NoError(t, err)
	for range 5 {
		h(sink{}, discover)
		h(sink{}, stranger)
	}
	require.Equal(t, 1, strings.Count(out.String(), "answered DHCP"), out.String())
	require.LessOrEqual(t, strings.Count(out.String(), "ignore DHCP"), 1, out.String())
}
