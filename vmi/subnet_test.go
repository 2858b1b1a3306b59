package vmi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
)

func TestTheNetworkOfAGuestBehindMasquerade(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "10.0.2.0/24", "192.168.66.128/25": "192.168.66.128/25", "10.1.2.3/24": "10.1.2.0/24",
		"10.10.010.0/24": "10.10.10.0/24", "010.008.000.0/024": "10.8.0.0/24", "169.254.1.0/24": "169.254.1.0/24",
	} {
		n, err := (&vmi.PodNetwork{VMNetworkCIDR: text}).Subnet4()
		require.NoError(t, err, text)
		require.Equal(t, want, n.String(), text)
	}
	for text, why := range map[string]string{
		"10.0.2.0": "address/length", "10.0.2.0/33": "address/length", "fd00::/64": "must be an IPv4 network", "10.0.0x2.0/24": "address/length",
		"10.0.2.0/31": "at most /30", "0.0.0.0/0": "must not hold", "127.0.0.0/8": "loopback", "126.0.0.0/7": "loopback",
		"224.0.0.0/24": "multicast", "250.0.0.0/24": "reserved", "10.0000.2.0/24": "address/length",
	} {
		_, err := (&vmi.PodNetwork{VMNetworkCIDR: text}).Subnet4()
		require.ErrorContains(t, err, why, text)
	}
	n, err := (*vmi.PodNetwork)(nil).Subnet6()
	require.NoError(t, err)
	require.Equal(t, "fd10:0:2::/120", n.String())
	for text, why := range map[string]string{
		"10.0.2.0/24": "must be an IPv6 network", "fd00::/127": "at most /126", "::/0": "must not hold", "fe80::/64": "link-local", "ff02::/64": "multicast",
		"::ffff:10.0.2.0/120": "addresses of IPv4",
	} {
		_, err := (&vmi.PodNetwork{VMIPv6NetworkCIDR: text}).Subnet6()
		require.ErrorContains(t, err, why, text)
	}
}
