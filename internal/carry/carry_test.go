package carry_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/carry"
)

// given are what a reader gives at once, and then the error.
type given struct {
	parts []int
	end   error
	made  *bytes.Buffer
	asked *[]int
}

func (g *given) Read(b []byte) (int, error) {
	*g.asked = append(*g.asked, len(b))
	if len(g.parts) == 0 {
		return 0, g.end
	}
	n := min(g.parts[0], len(b))
	g.parts = g.parts[1:]
	for i := range n {
		b[i] = byte(rand.Int())
	}
	g.made.Write(b[:n])
	return n, nil
}

func TestALargeBufferIsHeldWhileMuchComes(t *testing.T) {
	const many = 1 << 20
	cut := errors.New("cut")
	for name, tt := range map[string]struct {
		parts []int
		end   error
		want  []int
		err   error
	}{
		"nothing":         {nil, io.EOF, []int{carry.Little}, nil},
		"little":          {[]int{1, carry.Little - 1, 5}, io.EOF, []int{carry.Little, carry.Little, carry.Little, carry.Little}, nil},
		"much":            {[]int{many, many, carry.Little}, io.EOF, []int{carry.Little, carry.Much, carry.Much, carry.Much}, nil},
		"little after":    {[]int{many, many, 3, 4}, io.EOF, []int{carry.Little, carry.Much, carry.Much, carry.Little, carry.Little}, nil},
		"much again":      {[]int{many, 3, many, 7}, cut, []int{carry.Little, carry.Much, carry.Little, carry.Much, carry.Little}, cut},
		"none for a read": {[]int{0, 2}, io.EOF, []int{carry.Little, carry.Little, carry.Little}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var out, made bytes.Buffer
			var asked []int
			err := carry.Copy(&out, &given{tt.parts, tt.end, &made, &asked})
			require.ErrorIs(t, err, tt.err)
			require.Equal(t, tt.want, asked)
			require.Equal(t, made.Bytes(), out.Bytes())
		})
	}
}

func TestBulkReadsMoreAtOnce(t *testing.T) {
	a, inner := joined(t)
	b, far := net.Pipe()
	go carry.Bulk(t.Context(), inner, far)
	const much = 4 << 20
	go func() {
		_, _ = a.Write(make([]byte, much))
		_ = a.Close()
	}()
	most, sum := 0, 0
	for buf := make([]byte, much); ; {
		n, err := b.Read(buf) // a pipe gives what one write has
		most, sum = max(most, n), sum+n
		if err != nil {
			break
		}
	}
	require.Equal(t, much, sum)
	require.Greater(t, most, carry.Much)
}

// refusing takes nothing.
type refusing struct{ err error }

func (r refusing) Write([]byte) (int, error) { return 0, r.err }

func TestCopyEndsWhenNothingIsTaken(t *testing.T) {
	full := errors.New("full")
	require.ErrorIs(t, carry.Copy(refusing{full}, strings.NewReader(strings.Repeat("x", 1<<20))), full)
}

func TestBothEndTogether(t *testing.T) {
	for name, end := range map[string]func(a, b net.Conn, cancel func()){
		"one side closes":  func(a, _ net.Conn, _ func()) { _ = a.Close() },
		"the other closes": func(_, b net.Conn, _ func()) { _ = b.Close() },
		"the context ends": func(_, _ net.Conn, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			a, inner := net.Pipe()
			b, far := net.Pipe()
			done := make(chan struct{})
			go func() { defer close(done); carry.Both(ctx, inner, far) }()
			for _, pair := range [][2]net.Conn{{a, b}, {b, a}} {
				go func() { _, _ = io.WriteString(pair[0], "hello") }()
				got := make([]byte, 5)
				_, err := io.ReadFull(pair[1], got)
				require.NoError(t, err)
				require.Equal(t, "hello", string(got))
			}
			end(a, b, cancel)
			<-done
			for _, c := range []net.Conn{a, b} {
				_, err := c.Read(make([]byte, 1))
				require.Error(t, err)
			}
		})
	}
}

// joined are the two ends of a connection of TCP.
func joined(t *testing.T) (a, b net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	a, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	b, err = l.Accept()
	require.NoError(t, errors.Join(err, l.Close()))
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return a, b
}

func TestWhatWasWrittenBeforeTheEndArrivesWhileTheOtherSideSends(t *testing.T) {
	const much = 256 << 10
	for range 20 {
		user, near := joined(t)
		far, guest := joined(t)
		done := make(chan struct{})
		go func() { defer close(done); carry.BothIn(t.Context(), time.Minute, near, far) }()
		go func() {
			for b := make([]byte, 1<<10); ; {
				if _, err := guest.Write(b); err != nil {
					return
				}
			}
		}()
		go func() {
			_, _ = user.Write(make([]byte, much))
			carry.FinishIn(time.Minute, user)
		}()
		n, err := io.Copy(io.Discard, guest)
		require.NoError(t, err)
		require.EqualValues(t, much, n)
		_ = guest.Close()
		<-done
	}
}
