package network_test

import (
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/network/link"
	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/internal/network/nft"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

// road is a way between a client beyond the pod and a guest in it.
type road struct {
	node    *os.File
	address string // of the guest for the client
	guest   *os.File
}

// roads are those of the bindings, and for each one by a tap device made by hand: a
// port of a bridge with the pod's link, and a link of its own behind the two rules
// that translate addresses.
var roads = map[string]func(b *testing.B) road{
	"hand":       byHand,
	"hand-nat":   translatedByHand,
	"bridge":     func(b *testing.B) road { return bound(b, bridge) },
	"masquerade": func(b *testing.B) road { return bound(b, masquerade) },
}

func byHand(b *testing.B) road {
	pod, node := networktest.BarePod(b)
	networktest.IP(b, pod, "link add name hand type bridge mcast_snooping 0")
	networktest.IP(b, pod, "tuntap add tap0 mode tap vnet_hdr")
	networktest.IP(b, pod, "link set tap0 mtu 1450 master hand up")
	networktest.IP(b, pod, "link set eth0 master hand up")
	networktest.IP(b, pod, "link set hand up")
	return road{node, networktest.PodAddress, hand(b, pod, network.Attachment{Tap: "tap0", MAC: "0a:58:0a:f4:00:09", MTU: 1450}, networktest.PodAddress, networktest.NodeAddress)}
}

func translatedByHand(b *testing.B) road {
	pod, node := networktest.Pod(b)
	networktest.IP(b, pod, "tuntap add tap0 mode tap vnet_hdr")
	networktest.IP(b, pod, "link set tap0 mtu 1450 up")
	networktest.IP(b, pod, "addr add 10.0.2.1/24 dev tap0")
	networktest.In(b, pod, func() { require.NoError(b, os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0)) })
	networktest.Run(b, pod, testenv.Program(b, "nft"), `
		add table ip hand
		add chain ip hand in { type nat hook prerouting priority dstnat; }
		add chain ip hand out { type nat hook postrouting priority srcnat; }
		add rule ip hand in iifname eth0 dnat to 10.0.2.2
		add rule ip hand out ip saddr 10.0.2.2 masquerade`)
	return road{node, networktest.PodAddress, hand(b, pod, network.Attachment{Tap: "tap0", MAC: "0a:58:0a:f4:00:09", MTU: 1450}, "10.0.2.2", "10.0.2.1")}
}

func bound(b *testing.B, binding vmi.InterfaceBinding) road {
	pod, node := networktest.Pod(b)
	s, err := link.Observe(b.Context(), pod)
	require.NoError(b, err)
	cfg, err := network.Plan(network.Input{Instance: instance(binding), State: s, Owner: network.Owner{UID: 107, GID: 107}})
	require.NoError(b, err)
	require.NoError(b, nft.Apply(pod, cfg))
	require.NoError(b, link.Apply(b.Context(), pod, cfg))
	a := cfg.Attachments[0]
	return road{node, networktest.PodAddress, hand(b, pod, a, a.DHCP.Address.Addr().String(), a.DHCP.Router.String())}
}

// hand gives a guest its address and its gateway.
func hand(b *testing.B, pod *os.File, a network.Attachment, address, gateway string) *os.File {
	guest := networktest.Guest(b, pod, a)
	networktest.IP(b, guest, "addr add "+address+"/24 dev eth0")
	networktest.IP(b, guest, "route add default via "+gateway)
	return guest
}

// listen accepts connections of the guest and gives each to serve.
func (r road) listen(b *testing.B, serve func(net.Conn)) {
	networktest.In(b, r.guest, func() {
		l, err := net.Listen("tcp", ":8080")
		require.NoError(b, err)
		b.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go serve(c)
			}
		}()
	})
}

func (r road) dial(b *testing.B) (c net.Conn) {
	networktest.In(b, r.node, func() {
		var err error
		c, err = net.DialTimeout("tcp", r.address+":8080", 5*time.Second)
		require.NoError(b, err)
	})
	return c
}

func echo(c net.Conn) {
	_, _ = io.Copy(c, c)
	_ = c.Close()
}

// BenchmarkTraffic compares what a guest sends and receives by the bindings with a tap
// device made by hand. The guest copies frames as [networktest.Guest] does, on every
// road alike. Roads are compared within a round, and the median of all rounds counts, so
// that what else the host does changes little.
func BenchmarkTraffic(b *testing.B) {
	measures := []struct {
		name, unit string
		measure    func(*testing.B, road, time.Duration) float64
	}{{"throughput", "MB/s", throughput}, {"round-trips", "round-trips/s", roundTrips}, {"connections", "conn/s", connections}}
	all := map[string]road{}
	for name, make := range roads {
		all[name] = make(b)
	}
	for name, r := range all {
		r.listen(b, echo)
		c := r.dial(b)
		require.NoError(b, c.Close(), name)
	}
	for _, m := range measures {
		b.Run(m.name, func(b *testing.B) {
			got := map[string][]float64{}
			share := func(name, of string) {
				n := len(got[name]) - 1
				got[name+" share"] = append(got[name+" share"], 100*got[name][n]/got[of][n])
			}
			for b.Loop() {
				for name, r := range all { // in another order each time
					got[name] = append(got[name], m.measure(b, r, 300*time.Millisecond))
				}
				share("bridge", "hand")
				share("masquerade", "hand-nat")
			}
			for name := range all {
				b.ReportMetric(median(got[name]), m.unit+":"+name)
			}
			b.ReportMetric(median(got["bridge share"]), "%of-hand:bridge")
			b.ReportMetric(median(got["masquerade share"]), "%of-hand-nat:masquerade")
		})
	}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// throughput is how many megabytes a second come back of a stream of which all does.
func throughput(b *testing.B, r road, d time.Duration) float64 {
	c := r.dial(b)
	defer c.Close()
	began, n := time.Now(), 0
	go func() {
		block := make([]byte, 1<<16)
		for time.Since(began) < d {
			if _, err := c.Write(block); err != nil {
				return
			}
		}
		_ = c.(*net.TCPConn).CloseWrite()
	}()
	block := make([]byte, 1<<16)
	for {
		k, err := c.Read(block)
		n += k
		if err != nil {
			break
		}
	}
	return float64(n) / 1e6 / time.Since(began).Seconds()
}

// roundTrips is how many bytes a second go to the guest and back one after the other.
func roundTrips(b *testing.B, r road, d time.Duration) float64 {
	c := r.dial(b)
	defer c.Close()
	began, n := time.Now(), 0
	one := make([]byte, 1)
	for ; time.Since(began) < d; n++ {
		_, err := c.Write(one)
		require.NoError(b, err)
		_, err = io.ReadFull(c, one)
		require.NoError(b, err)
	}
	return float64(n) / time.Since(began).Seconds()
}

// connections is how many connections a second are opened, used and closed.
func connections(b *testing.B, r road, d time.Duration) float64 {
	n := 0
	var took time.Duration
	networktest.In(b, r.node, func() {
		began := time.Now()
		one := make([]byte, 1)
		for ; time.Since(began) < d; n++ {
			c, err := net.DialTimeout("tcp", r.address+":8080", 5*time.Second)
			require.NoError(b, err)
			_, err = c.Write(one)
			require.NoError(b, err)
			_, err = io.ReadFull(c, one)
			require.NoError(b, err)
			// Without a reset the ports of the client would be used up.
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}
		took = time.Since(began)
	})
	return float64(n) / took.Seconds()
}
