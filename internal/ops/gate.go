package ops

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"github.com/podvisor/podvisor/internal/review"
)

// Every pod in the cluster can connect, and a connection costs memory before its
// handshake is done. So many are open in all, and so many from one source: more than
// the API server, the kubelet and a collector of metrics need together.
const (
	connsInAll     = 768
	connsPerSource = 256
)

// use is what a connection is used for now. What costs least to lose comes first.
type use int

const (
	begun use = iota // its handshake or its first request is not read yet
	idle
	active
)

// gate is a listener that limits how many connections are open. When there is no
// room, the place of a connection that is not used is given to the new one: of the
// source that has most, the oldest. A client that asks one question and leaves is
// answered however many connections others hold open.
type gate struct {
	net.Listener
	inAll, perSource int

	mu      sync.Mutex
	opened  uint64
	open    map[*conn]struct{}
	sources map[netip.Addr]int
}

// Gate returns a listener that has so many connections open at most, in all and of one
// source: the address, or of an IPv6 address the network. When there is no room, a
// connection that is not used gives its place to a new one. A [http.Server] on it needs
// [Track] as its ConnState, also behind TLS; connections that it gives away do not count.
func Gate(l net.Listener, inAll, perSource int) net.Listener { return newGate(l, inAll, perSource) }

func newGate(l net.Listener, inAll, perSource int) *gate {
	return &gate{Listener: l, inAll: inAll, perSource: perSource, open: map[*conn]struct{}{}, sources: map[netip.Addr]int{}}
}

// conn is a connection through a gate.
type conn struct {
	net.Conn
	gate   *gate
	source netip.Addr
	number uint64 // by which older ones are found
	use    use    // protected by the gate's lock
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.gate.leave(c)
	return c.Conn.Close()
}

// Accept implements net.Listener.
func (g *gate) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		in, out := g.enter(&conn{Conn: c, gate: g, source: review.Source(c.RemoteAddr().String())})
		if out != nil {
			drop(out.Conn)
		}
		if in != nil {
			return in, nil
		}
		drop(c)
	}
}

// drop closes a connection without a word to its other end, which costs nothing
// afterwards.
func drop(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}

// enter lets the connection in, or not. The connection that gives it its place is to
// be closed.
func (g *gate) enter(c *conn) (in, out *conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.sources[c.source] >= g.perSource:
		out = g.victim(func(o *conn) bool { return o.source == c.source && o.use != active })
	case len(g.open) >= g.inAll:
		own := g.sources[c.source]
		out = g.victim(func(o *conn) bool {
			switch o.use {
			case begun:
				return true
			case idle:
				return g.sources[o.source] > own
			default:
				return g.sources[o.source] > own+1
			}
		})
	default:
		g.add(c)
		return c, nil
	}
	if out == nil {
		return nil, nil
	}
	g.remove(out)
	g.add(c)
	return c, out
}

// victim is the connection that loses its place, among those that may: one that is used
// least, of the source that has most, the oldest.
func (g *gate) victim(may func(*conn) bool) *conn {
	var found *conn
	for c := range g.open {
		if may(c) && (found == nil || g.before(c, found)) {
			found = c
		}
	}
	return found
}

func (g *gate) before(a, b *conn) bool {
	if a.use != b.use {
		return a.use < b.use
	}
	if x, y := g.sources[a.source], g.sources[b.source]; x != y {
		return x > y
	}
	return a.number < b.number
}

func (g *gate) add(c *conn) {
	g.opened++
	c.number = g.opened
	g.open[c] = struct{}{}
	g.sources[c.source]++
}

// remove forgets a connection. One that is not there is no fault: it was closed
// before.
func (g *gate) remove(c *conn) {
	if _, ok := g.open[c]; !ok {
		return
	}
	delete(g.open, c)
	if g.sources[c.source]--; g.sources[c.source] == 0 {
		delete(g.sources, c.source)
	}
}

func (g *gate) leave(c *conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.remove(c)
}

// Track notes what a server does with a connection of a [Gate]. One that was taken over, which
// was let in by its request, does not count any more.
func Track(c net.Conn, s http.ConnState) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	own, ok := c.(*conn)
	if !ok {
		return
	}
	g := own.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	switch s {
	case http.StateActive:
		own.use = active
	case http.StateIdle:
		own.use = idle
	case http.StateHijacked, http.StateClosed:
		g.remove(own)
	}
}
