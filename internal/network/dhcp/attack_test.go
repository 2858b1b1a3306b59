package dhcp

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/internal/testenv"
)

// mutate changes a message as no client would: bits, lengths, options that are cut
// or repeated, and bytes at the end.
func mutate(r *rand.Rand, message []byte) []byte {
	m := bytes.Clone(message)
	for range 1 + r.IntN(8) {
		switch at := r.IntN(len(m)); r.IntN(6) {
		case 0:
			m[at] = byte(r.Uint32())
		case 1:
			m[at] ^= 1 << r.IntN(8)
		case 2:
			m = m[:at+1]
		case 3:
			m = append(m, m[at:]...)
		case 4:
			m = append(m, bytes.Repeat([]byte{byte(r.Uint32())}, r.IntN(300))...)
		case 5:
			// An option that says that it is longer than what follows.
			m = append(m, byte(r.Uint32()), byte(r.Uint32()))
		}
		m = m[:min(len(m), 1400)]
	}
	return m
}

// flooder sends messages of a guest to the server.
type flooder struct {
	conn net.Conn
	r    *rand.Rand
	good [][]byte
}

func newFlooder(t *testing.T, guest *os.File) flooder {
	t.Helper()
	f := flooder{r: rand.New(rand.NewPCG(1, 2))}
	for _, kind := range []dhcpv4.MessageType{dhcpv4.MessageTypeDiscover, dhcpv4.MessageTypeRequest, dhcpv4.MessageTypeInform, dhcpv4.MessageTypeDecline} {
		f.good = append(f.good, request(t, kind, asksFor("10.0.2.2"),
			dhcpv4.WithOption(dhcpv4.OptClientIdentifier(bytes.Repeat([]byte{1}, 200))),
			dhcpv4.WithOption(dhcpv4.OptRelayAgentInfo(dhcpv4.OptGeneric(dhcpv4.AgentCircuitIDSubOption, bytes.Repeat([]byte{2}, 100)))),
		).ToBytes())
	}
	networktest.IP(t, guest, "addr add 10.0.2.2/24 dev eth0")
	networktest.In(t, guest, func() {
		c, err := net.Dial("udp", "10.0.2.1:67")
		require.NoError(t, err)
		f.conn = c
	})
	t.Cleanup(func() { f.conn.Close() })
	return f
}

func (f flooder) send(t *testing.T) {
	t.Helper()
	// A full queue of the link loses datagrams.
	_, _ = f.conn.Write(mutate(f.r, f.good[f.r.IntN(len(f.good))]))
}

// served starts the server for a guest behind a link, and returns the guest's end.
func served(t *testing.T) *os.File {
	t.Helper()
	pod, guest := networktest.Namespace(t), networktest.Namespace(t)
	networktest.IP(t, pod, "link add k6t-eth0 type veth peer name eth0 address "+mac.String()+fmt.Sprintf(" netns /proc/%d/fd/%d", os.Getpid(), guest.Fd()))
	networktest.IP(t, pod, "addr add 10.0.2.1/24 dev k6t-eth0")
	networktest.IP(t, pod, "link set k6t-eth0 up")
	networktest.IP(t, guest, "link set eth0 up")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	listening := make(chan struct{})
	server := Server{Resolver: resolver, Listening: sync.OnceFunc(func() { close(listening) })}
	go networktest.In(t, pod, func() { ended <- server.Serve(ctx, offer) })
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	<-listening
	return guest
}

// leased checks that a client of the guest is served beside what else happens.
func leased(t *testing.T, guest *os.File) {
	t.Helper()
	networktest.IP(t, guest, "addr flush dev eth0")
	require.Contains(t, networktest.Lease(t, guest, "eth0"), "ip='10.0.2.2'\n")
}

func TestAttackTheServerWithMalformedMessages(t *testing.T) {
	guest := served(t)
	leased(t, guest)
	networktest.IP(t, guest, "addr flush dev eth0")
	f := newFlooder(t, guest)
	count := 20_000
	if testenv.Long() {
		count = 5_000_000
	}
	answers := networktest.Watch(t, guest, "eth0")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began, most := time.Now(), 0
	for n := range count {
		f.send(t)
		if n%1000 == 0 {
			most = max(most, runtime.NumGoroutine())
			answers.Forget()
		}
	}
	took := time.Since(began)
	runtime.GC()
	runtime.ReadMemStats(&after)
	grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d messages, %.0f each second; the heap grew by %d KiB; at most %d goroutines", count, float64(count)/took.Seconds(), grown>>10, most)
	require.Less(t, grown, int64(16<<20))
	require.Less(t, most, 50)
	leased(t, guest)
}

func TestAttackAClientIsServedBesideAFlood(t *testing.T) {
	guest := served(t)
	f := newFlooder(t, guest)
	flood, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	sent := 0
	go func() {
		defer close(ended)
		// More would fill the queue of the server's socket, which is the guest's alone.
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for flood.Err() == nil {
			<-tick.C
			for range 20 {
				f.send(t)
				sent++
			}
		}
	}()
	began := time.Now()
	require.Contains(t, networktest.Lease(t, guest, "eth0"), "ip='10.0.2.2'\n")
	took := time.Since(began)
	stop()
	<-ended
	t.Logf("served after %s beside %.0f messages each second", took, float64(sent)/took.Seconds())
}

func TestAttackTheServerForOtherClients(t *testing.T) {
	guest := served(t)
	networktest.IP(t, guest, "addr add 10.0.2.9/24 dev eth0")
	answers := networktest.Watch(t, guest, "eth0")
	other := net.HardwareAddr{2, 9, 9, 9, 9, 9}
	var conn net.Conn
	networktest.In(t, guest, func() {
		c, err := net.Dial("udp", "10.0.2.1:67")
		require.NoError(t, err)
		conn = c
	})
	defer conn.Close()
	send := func(id uint32, from net.HardwareAddr) []byte {
		var xid dhcpv4.TransactionID
		binary.BigEndian.PutUint32(xid[:], id)
		_, err := conn.Write(request(t, dhcpv4.MessageTypeDiscover, dhcpv4.WithHwAddr(from), dhcpv4.WithTransactionID(xid)).ToBytes())
		require.NoError(t, err)
		return append([]byte{2, 1, 6, 0}, xid[:]...)
	}
	require.Eventually(t, func() bool { return answers.Has(send(1, mac)) }, time.Minute, 10*time.Millisecond)
	unanswered := send(2, other)
	require.True(t, answers.Await(send(3, mac)))
	require.False(t, answers.Has(unanswered))
}

// exchange is a connection with messages that came, and what is sent in answer.
type exchange struct {
	net.PacketConn
	received, sent [][]byte
}

func (e *exchange) ReadFrom(b []byte) (int, net.Addr, error) {
	if len(e.received) == 0 {
		return 0, nil, os.ErrClosed
	}
	n := copy(b, e.received[0])
	e.received = e.received[1:]
	return n, &net.UDPAddr{}, nil
}

func (e *exchange) WriteTo(b []byte, _ net.Addr) (int, error) {
	e.sent = append(e.sent, bytes.Clone(b))
	return len(b), nil
}

// FuzzServe sends what a guest may send to the real server's loop.
func FuzzServe(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	m, err := dhcpv4.New(dhcpv4.WithMessageType(dhcpv4.MessageTypeDiscover), dhcpv4.WithHwAddr(mac))
	require.NoError(f, err)
	f.Add(m.ToBytes())
	for range 20 {
		f.Add(mutate(r, m.ToBytes()))
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		c := &exchange{received: [][]byte{packet, m.ToBytes()}}
		require.ErrorIs(t, answerAll(c, handler(offer, resolver, discard)), os.ErrClosed)
		require.NotEmpty(t, c.sent, "the client after it is served")
		for _, b := range c.sent {
			require.Equal(t, mac.String(), net.HardwareAddr(b[28:34]).String())
			require.LessOrEqual(t, len(b), 2*longest)
		}
	})
}
