package stream

import (
	"crypto/tls"
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/carry"
	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/launcher/protocol"
)

// BenchmarkRoad measures the bytes that go to a guest and back, and what an open stream
// takes of memory in the Dialer and the Server together, with an echo as the guest.
func BenchmarkRoad(b *testing.B) {
	b.Run("throughput", func(b *testing.B) {
		r := newRoad(b)
		conn, err := r.dialer.Stream(b.Context(), on("n1"), "console")
		require.NoError(b, err)
		defer conn.Close()
		block := make([]byte, 32<<10)
		b.SetBytes(int64(len(block)))
		go func() {
			for range b.N {
				if _, err := conn.Write(block); err != nil {
					return
				}
			}
		}()
		b.ResetTimer()
		_, err = io.CopyN(io.Discard, conn, int64(b.N)*int64(len(block)))
		require.NoError(b, err)
	})
	b.Run("memory", func(b *testing.B) {
		const streams = 200
		for b.Loop() {
			r := newRoad(b, func(c *ServerConfig) { c.StreamsPerVMI = streams })
			before := testenv.InUse()
			for range streams {
				conn, err := r.dialer.Stream(b.Context(), on("n1"), "console")
				require.NoError(b, err)
				defer conn.Close()
				echoes(b, conn, "hello")
			}
			b.ReportMetric(float64(testenv.InUse()-before)/streams, "B/stream")
		}
	})
}

// BenchmarkMigration measures the bytes of a migration between two nodes, from the socket of
// the launcher at the source to the target's, and beside it one connection of TLS and one of
// TCP between two Go programs, over the same veth.
func BenchmarkMigration(b *testing.B) {
	near, far := networktest.Pod(b)
	const at = networktest.NodeAddress + ":0"
	block := make([]byte, 1<<20)
	send := func(b *testing.B, to io.WriteCloser, all <-chan int64) {
		b.SetBytes(int64(len(block)))
		b.ResetTimer()
		for range b.N {
			_, err := to.Write(block)
			require.NoError(b, err)
		}
		require.NoError(b, to.Close())
		require.Equal(b, int64(b.N)*int64(len(block)), <-all)
	}
	drain := func(from net.Conn) int64 {
		n, _ := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{from}, make([]byte, 256<<10))
		return n
	}
	cert := newCertificate(b)
	for name, wrap := range map[string]func(net.Conn, bool) net.Conn{
		"TCP": func(c net.Conn, _ bool) net.Conn { return c },
		"TLS": func(c net.Conn, server bool) net.Conn {
			if server {
				return tls.Server(c, cert.server())
			}
			return tls.Client(c, pinned(cert.Hash))
		},
	} {
		b.Run(name, func(b *testing.B) {
			var l net.Listener
			var err error
			networktest.In(b, far, func() { l, err = net.Listen("tcp", at) })
			require.NoError(b, err)
			defer l.Close()
			all := make(chan int64, 1)
			go func() {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				all <- drain(wrap(conn, true))
			}()
			conn, err := networktest.Dial(b, near, "tcp", l.Addr().String())
			require.NoError(b, err)
			send(b, wrap(conn, false), all)
		})
	}
	b.Run("handlers", func(b *testing.B) {
		source := newCertificate(b)
		r := &road{api: newAPI(b), guests: &guests{}}
		networktest.In(b, far, func() { r.serve(at, accepts(source)) })
		all := make(chan int64, 1)
		r.guests.begins = func(far net.Conn) { all <- drain(far) }
		var there net.Conn
		var err error
		networktest.In(b, near, func() {
			there, err = source.Client(Peer{Certificate: r.hash, Address: r.addr}).Stream(b.Context(), about("pod-1", "", protocol.StreamMigrationMemory))
		})
		require.NoError(b, err)
		l, err := net.Listen("unix", filepath.Join(b.TempDir(), "s"))
		require.NoError(b, err)
		defer l.Close()
		qemu, err := net.Dial("unix", l.Addr().String())
		require.NoError(b, err)
		here, err := l.Accept()
		require.NoError(b, err)
		go carry.Bulk(b.Context(), here, there)
		send(b, qemu, all)
	})
}
