package main

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLease(t *testing.T) {
	env := map[string]string{
		"interface": "eth0", "ip": "10.0.2.2", "mask": "24", "serverid": "10.0.2.1", "router": "10.0.2.1", "dns": "10.96.0.10 1.1.1.1",
		"search": "default.svc.cluster.local svc.cluster.local", "mtu": "1450", "hostname": "demo",
	}
	get := func(k string) string { return env[k] }
	want := lease{
		Link: "eth0", Address: netip.MustParsePrefix("10.0.2.2/24"), Server: "10.0.2.1", MTU: "1450", Hostname: "demo",
		Routes:  []leaseRoute{{To: "default", Via: netip.MustParseAddr("10.0.2.1")}},
		Servers: []string{"10.96.0.10", "1.1.1.1"}, Search: []string{"default.svc.cluster.local", "svc.cluster.local"},
	}
	got, err := parseLease(get)
	require.NoError(t, err)
	require.Equal(t, want, got)

	env["staticroutes"] = "0.0.0.0/0 169.254.1.1 169.254.1.1/32 0.0.0.0"
	got, err = parseLease(get)
	require.NoError(t, err)
	require.Equal(t, []leaseRoute{
		{To: "default", Via: netip.MustParseAddr("169.254.1.1")},
		{To: "169.254.1.1/32", Via: netip.MustParseAddr("0.0.0.0")},
	}, got.Routes, "static routes are there in place of the router")

	env["mask"] = "33"
	_, err = parseLease(get)
	require.Error(t, err)
}

func TestNetworkConfig(t *testing.T) {
	const body = "version: 2\nethernets:\n  eth0: {dhcp4: true}\n  other: {match: {macaddress: '02:00:00:00:00:0A'}, addresses: [10.0.0.2/24]}\n"
	for name, text := range map[string]string{
		"as it is":                body,
		"inside of netplan's key": "network:\n  version: 2\n  ethernets:\n    eth0: {dhcp4: true}\n    other: {match: {macaddress: '02:00:00:00:00:0A'}, addresses: [10.0.0.2/24]}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conf, err := parseNetworkConfig([]byte(text))
			require.NoError(t, err)
			e, ok := conf.of(link{name: "eth0", mac: "02:00:00:00:00:01"})
			require.True(t, ok)
			require.True(t, e.DHCP4)
			e, ok = conf.of(link{name: "eth1", mac: "02:00:00:00:00:0a"})
			require.True(t, ok, "the hardware address says which one it is")
			require.Equal(t, []string{"10.0.0.2/24"}, e.Addresses)
			_, ok = conf.of(link{name: "other"})
			require.False(t, ok, "the name of an entry with a match means nothing")
		})
	}
	_, err := parseNetworkConfig([]byte("version: 1\n"))
	require.Error(t, err)
	_, err = parseNetworkConfig(nil)
	require.NoError(t, err)
}

func TestModulesOfADevice(t *testing.T) {
	m := &modules{needs: map[string][]string{}}
	m.parse("module virtio\nmodule virtio_net virtio net_failover\nalias virtio_net virtio:d00000001v*\nalias sd_mod scsi:t-0x00*\n")
	require.Equal(t, []string{"virtio", "net_failover"}, m.needs["virtio_net"])
	require.Equal(t, []string{"virtio_net"}, m.match("virtio:d00000001v00001AF4"))
	require.Empty(t, m.match("virtio:d00000002v00001AF4"))
}
