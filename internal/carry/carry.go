package carry

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Little and Much are how many bytes are read at once: Little until so many have come at
// once, Much until fewer come. As many in one frame of a websocket fill two records of TLS,
// and do not begin a third.
const (
	Little = 1 << 10
	Much   = 32<<10 - 16
)

// bulk is how many bytes [Bulk] reads at once.
const bulk = 256 << 10

var (
	pool  = sync.Pool{New: func() any { return new(make([]byte, Much)) }}
	bulks = sync.Pool{New: func() any { return new(make([]byte, bulk)) }}
)

// Copy writes to what comes from from, each read by one write, until either fails. It
// returns nil at the end of from, and otherwise the error. No other method of the two is
// called than Write and Read: the copies that connections have take larger buffers.
func Copy(to io.Writer, from io.Reader) error { return copyBy(&pool, to, from) }

// copyBy is Copy with the large buffers of a pool.
func copyBy(pool *sync.Pool, to io.Writer, from io.Reader) error {
	small := make([]byte, Little)
	var large *[]byte // nil while little comes
	defer func() {
		if large != nil {
			pool.Put(large)
		}
	}()
	for {
		b := small
		if large != nil {
			b = *large
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
			large = pool.Get().(*[]byte)
		case large != nil && n < Little:
			pool.Put(large)
			large = nil
		}
	}
}

// lingers is how long the other side has to end too when one side has.
const lingers = 2 * time.Second

// CloseWrite ends what is written to the connection, and not what comes from it. It is
// errors.ErrUnsupported for a connection that ends only as a whole.
func CloseWrite(c net.Conn) error {
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Finish closes the connection when the other side has read what was written, or after
// some seconds. To close it while something is unread would reset it, and what the other
// side has not read yet would be lost.
func Finish(c net.Conn) { finish(c, lingers) }

func finish(c net.Conn, lingers time.Duration) {
	if CloseWrite(c) == nil && c.SetReadDeadline(time.Now().Add(lingers)) == nil {
		_, _ = io.Copy(io.Discard, c)
	}
	_ = c.Close()
}

// Both copies in both directions until one of them is at its end or ctx is, and closes
// both connections: what came before the end is given to the other side, for which that has
// some seconds. How they ended is not reported.
func Both(ctx context.Context, a, b net.Conn) { sides{a, b, lingers}.join(ctx, &pool) }

// Bulk is [Both] for streams that carry much until they end, as the memory of a guest: it
// reads up to 256 KiB at once.
func Bulk(ctx context.Context, a, b net.Conn) { sides{a, b, lingers}.join(ctx, &bulks) }

// sides are two connections, and how long one has to end too when the other has.
type sides struct {
	a, b    net.Conn
	lingers time.Duration
}

func (s sides) join(ctx context.Context, pool *sync.Pool) {
	end := sync.OnceFunc(func() { _, _ = s.a.Close(), s.b.Close() })
	defer context.AfterFunc(ctx, end)()
	late := time.AfterFunc(time.Hour, end)
	late.Stop()
	defer late.Stop()
	var done sync.WaitGroup
	for _, pair := range [][2]net.Conn{{s.a, s.b}, {s.b, s.a}} {
		done.Go(func() {
			if copyBy(pool, pair[0], pair[1]) != nil || CloseWrite(pair[0]) != nil {
				end()
				return
			}
			late.Reset(s.lingers)
		})
	}
	done.Wait()
	end()
}
