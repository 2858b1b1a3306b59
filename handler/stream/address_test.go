package stream

import (
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/launcher/protocol"
)

func TestTheHandlerOfANodeInTheNetworkOfMigrations(t *testing.T) {
	t.Parallel()
	r := newRoad(t)
	port := strconv.Itoa(r.dialer.config.Port)
	for annotation, want := range map[string]string{
		"198.51.100.2": "198.51.100.2:" + port, "2001:db8::2": "[2001:db8::2]:" + port,
		"": "", "moves.example.com": "", "198.51.100.2:1": "", "127.0.0.1": "", "169.254.169.254": "", "0.0.0.0": "", "fe80::1%eth0": "", "2001:db8::2%eth0": "", "224.0.0.1": "",
	} {
		r.mu.Lock()
		r.address = annotation
		r.mu.Unlock()
		peer, err := r.dialer.Handler(t.Context(), "n1", "kubevirt/moves")
		if want == "" {
			requireRefusal(t, err, protocol.ReasonUnavailable)
			require.ErrorContains(t, err, "virt-handler of node n1 has no address in network kubevirt/moves of spec.configuration.migrations: attach it to the DaemonSet virt-handler as interface migration0")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, Peer{Certificate: r.hash, Address: want}, peer)
		peer, err = r.dialer.Handler(t.Context(), "n1", "")
		require.NoError(t, err)
		require.Equal(t, r.addr, peer.Address, "it is not used unless a network is named")
	}
}

// joined are two network namespaces with a link of this name and these addresses in each.
func joined(t *testing.T, source, target *os.File, link, from, to string) {
	t.Helper()
	networktest.IP(t, source, fmt.Sprintf("link add %s type veth peer name %[1]s netns /proc/%d/fd/%d", link, os.Getpid(), target.Fd()))
	for ns, address := range map[*os.File]string{source: from, target: to} {
		networktest.IP(t, ns, "addr add "+address+" dev "+link)
		networktest.IP(t, ns, "link set "+link+" up")
	}
}

// sent is how many bytes have left the namespace by the link.
func sent(t *testing.T, ns *os.File, link string) int {
	t.Helper()
	for line := range strings.Lines(networktest.Read(t, ns, "/proc/thread-self/net/dev")) {
		if fields := strings.Fields(line); fields[0] == link+":" {
			n, err := strconv.Atoi(fields[9])
			require.NoError(t, err)
			return n
		}
	}
	require.FailNow(t, "no link "+link)
	return 0
}

func TestMemoryGoesOverTheNetworkOfMigrationsAndNoOther(t *testing.T) {
	t.Parallel()
	const bytes = 8 << 20
	from, to := networktest.Namespace(t), networktest.Namespace(t)
	address := func() (is string, err error) {
		networktest.In(t, to, func() { is, err = MigrationAddress() })
		return is, err
	}
	joined(t, from, to, "eth0", "10.244.0.1/24", "10.244.0.2/24")
	is, err := address()
	require.NoError(t, err)
	require.Empty(t, is, "there is no such interface")
	networktest.IP(t, to, "link add "+MigrationInterface+" type veth peer name other")
	_, err = address()
	require.ErrorContains(t, err, "interface migration0 has no global unicast address")
	networktest.IP(t, to, "link delete "+MigrationInterface)
	joined(t, from, to, MigrationInterface, "198.51.100.1/24", "198.51.100.2/24")
	is, err = address()
	require.NoError(t, err)
	require.Equal(t, "198.51.100.2", is)

	source := newCertificate(t)
	r := newRoad(t)
	all := make(chan int64, 1)
	r.guests.begins = func(far net.Conn) {
		n, _ := io.Copy(io.Discard, far)
		all <- n
	}
	networktest.In(t, to, func() { r.serve(fmt.Sprintf(":%d", r.dialer.config.Port), accepts(source)) })
	r.mu.Lock()
	r.address = is
	r.mu.Unlock()
	peer, err := r.dialer.Handler(t.Context(), "n1", "moves")
	require.NoError(t, err)
	networktest.In(t, from, func() {
		conn, err := source.Client(peer).Stream(t.Context(), about("pod-1", "", protocol.StreamMigrationMemory))
		require.NoError(t, err)
		_, err = conn.Write(make([]byte, bytes))
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	})
	require.EqualValues(t, bytes, <-all)
	require.Greater(t, sent(t, from, MigrationInterface), bytes)
	require.Less(t, sent(t, from, "eth0"), 64<<10)
}
