package stream

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/testenv"
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
