package stream

import (
	"crypto/tls"
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/carry"
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

// BenchmarkMigration measures the bytes of a migration from the socket of the launcher at the
// source to the target's, and beside it one connection of TLS between two Go programs.
func BenchmarkMigration(b *testing.B) {
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
	b.Run("TLS", func(b *testing.B) {
		cert := newCertificate(b)
		l, err := tls.Listen("tcp", "127.0.0.1:0", cert.server())
		require.NoError(b, err)
		defer l.Close()
		all := make(chan int64, 1)
		go func() {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			n, _ := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{conn}, make([]byte, 256<<10))
			all <- n
		}()
		conn, err := tls.Dial("tcp", l.Addr().String(), pinned(cert.Hash))
		require.NoError(b, err)
		send(b, conn, all)
	})
	b.Run("handlers", func(b *testing.B) {
		source := newCertificate(b)
		r := newRoad(b, accepts(source))
		all := make(chan int64, 1)
		r.guests.begins = func(far net.Conn) {
			n, _ := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{far}, make([]byte, 256<<10))
			all <- n
		}
		far, err := source.Client(Peer{Certificate: r.hash, Address: r.addr}).Stream(b.Context(), about("pod-1", "", protocol.StreamMigrationMemory))
		require.NoError(b, err)
		l, err := net.Listen("unix", filepath.Join(b.TempDir(), "s"))
		require.NoError(b, err)
		defer l.Close()
		qemu, err := net.Dial("unix", l.Addr().String())
		require.NoError(b, err)
		near, err := l.Accept()
		require.NoError(b, err)
		go carry.Bulk(b.Context(), near, far)
		send(b, qemu, all)
	})
}
