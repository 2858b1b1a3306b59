package carry

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
)

// Little and Much are how many bytes are read at once: Little until so many have come at
// once, Much until fewer come.
const (
	Little = 1 << 10
	Much   = 16 << 10
)

var pool = sync.Pool{New: func() any { return new([Much]byte) }}

// Copy writes to what comes from from, each read by one write, until either fails. It
// returns nil at the end of from, and otherwise the error. No other method of the two is
// called than Write and Read: the copies that connections have take larger buffers.
func Copy(to io.Writer, from io.Reader) error {
	small := make([]byte, Little)
	var large *[Much]byte // nil while little comes
	defer func() {
		if large != nil {
			pool.Put(large)
		}
	}()
	for {
		b := small
		if large != nil {
			b = large[:]
		}
		n, err := from.Read(b)
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case large == nil && n == Little:
			large = pool.Get().(*[Much]byte)
		case large != nil && n < Little:
			pool.Put(large)
			large = nil
		}
	}
}

// Both copies in both directions until one of them is at its end or ctx is, and closes
// both connections. How they ended is not reported.
func Both(ctx context.Context, a, b net.Conn) {
	end := sync.OnceFunc(func() { _, _ = a.Close(), b.Close() })
	defer context.AfterFunc(ctx, end)()
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			defer end()
			_ = Copy(pair[0], pair[1])
		})
	}
	both.Wait()
}
