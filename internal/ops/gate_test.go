package ops

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/testenv"
)

// What the manifests say of the probes, and the kubelet's default: it ends a process that
// answers none of so many.
const (
	probeTimeout  = 5 * time.Second
	probeFailures = 3
)

// attack is an endpoint that strangers connect to.
type attack struct {
	t    *testing.T
	addr string
}

func newAttack(t *testing.T) attack {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, Endpoint{Addr: addr, Metrics: Registry(), Guard: everyone}) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	a := attack{t, addr}
	require.Eventually(t, func() bool { return a.probe() == nil }, time.Minute, 10*time.Millisecond)
	return a
}

// dial connects from a source.
func (a attack) dial(source string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}, Timeout: 10 * time.Second}
	return d.Dial("tcp", a.addr)
}

// probe does what the kubelet does: it asks on a connection of its own.
func (a attack) probe() error {
	c := http.Client{Timeout: probeTimeout, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}).DialContext,
	}}
	resp, err := c.Get("https://" + a.addr + "/healthz")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

// alive probes until an answer comes, as often as the kubelet does, and returns how long
// that took.
func (a attack) alive() time.Duration {
	a.t.Helper()
	began := time.Now()
	var errs []error
	for range probeFailures {
		err := a.probe()
		if err == nil {
			return time.Since(began)
		}
		errs = append(errs, err)
	}
	require.NoError(a.t, errors.Join(errs...), "the kubelet would end the process")
	return 0
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// A stranger begins handshakes that never end, and holds thousands of the connections
// open until the test ends. 27,000 cost 270 MB without a limit.
func TestAttackByConnectionsThatAreHalfOpen(t *testing.T) {
	number := 4000
	if testenv.Long() {
		number = 27000
	}
	for name, source := range map[string]func(int) string{
		"from one source":      func(int) string { return "127.0.0.9" },
		"from many sources":    func(i int) string { return fmt.Sprintf("127.0.%d.%d", 1+i/200%50, 1+i%200) },
		"from that of a probe": func(int) string { return "127.0.0.1" },
	} {
		t.Run(name, func(t *testing.T) {
			a, quiet := newAttack(t), newAttack(t)
			before, threads := heap(), runtime.NumGoroutine()
			hello := []byte{22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3} // of a handshake that never ends
			var open []net.Conn
			defer func() {
				for _, c := range open {
					_ = c.Close()
				}
			}()
			// Of an endpoint that is not attacked, on the same host: it may be busy.
			slowest, usual := time.Duration(0), time.Duration(0)
			for i := range number {
				if c, err := a.dial(source(i)); err == nil {
					_, _ = c.Write(hello)
					// Most of the first ones were dropped by the endpoint.
					if open = append(open, c); len(open) > 4000 {
						_ = open[0].Close()
						open = open[1:]
					}
				}
				if i%500 == 499 {
					slowest = max(slowest, a.alive())
					usual = max(usual, quiet.alive())
				}
			}
			grown := int64(heap()) - int64(before)
			t.Logf("%d connections: heap and stacks grew by %d KiB, goroutines by %d; slowest probe %s, %s of an endpoint beside", number, grown>>10, runtime.NumGoroutine()-threads, slowest, usual)
			require.Less(t, grown, int64(32<<20))
			require.Less(t, runtime.NumGoroutine()-threads, connsInAll+100)
		})
	}
}

func TestAttackByConnectionsThatAskSlowlyAndStay(t *testing.T) {
	a := newAttack(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	for i := range 1000 {
		wg.Go(func() {
			raw, err := a.dial(fmt.Sprintf("127.0.7.%d", 1+i%7))
			if err != nil {
				return
			}
			c := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
			_ = c.SetDeadline(time.Now().Add(30 * time.Second))
			if c.Handshake() == nil {
				_, _ = c.Write([]byte("GET /healthz HTTP/1.1\r\nHost: a\r\n"))
			}
			mu.Lock()
			defer mu.Unlock()
			open = append(open, c)
		})
	}
	wg.Wait()
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	a.alive() // a source with fewer connections gets a place of one that has many
}

// from is a connection from a source.
func from(g *gate, source string, u use) *conn {
	ours, _ := net.Pipe()
	return &conn{Conn: ours, gate: g, source: netip.MustParseAddr(source), use: u}
}

func TestThePlaceOfTheLeastUsedConnectionIsGiven(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		open  []use // of sources a, b, b
		from  string
		place int // of the one that is dropped; -1: none, -2: the new one is refused
	}{
		"of one whose handshake is not done":                           {open: []use{begun, idle, active}, from: "10.0.0.3", place: 0},
		"of the source that has most":                                  {open: []use{begun, begun, begun}, from: "10.0.0.3", place: 1},
		"of an idle one, if no handshake is open":                      {open: []use{idle, active, idle}, from: "10.0.0.3", place: 2},
		"of an active one of a source with more than the new one":      {open: []use{active, active, active}, from: "10.0.0.3", place: 1},
		"of the same source, if that has all it may":                   {open: []use{begun, active, idle}, from: "10.0.0.2", place: 2},
		"of none, if the same source has all it may and uses them":     {open: []use{begun, active, active}, from: "10.0.0.2", place: -2},
		"of none of a source with no more than the new one would have": {open: []use{active, active, active}, from: "10.0.0.1", place: -2},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate(nil, 3, 2)
			var open []*conn
			for i, u := range tt.open {
				c := from(g, []string{"10.0.0.1", "10.0.0.2", "10.0.0.2"}[i], u)
				in, out := g.enter(c)
				require.Equal(t, c, in)
				require.Nil(t, out)
				open = append(open, c)
			}
			n := from(g, tt.from, begun)
			in, out := g.enter(n)
			if tt.place == -2 {
				require.Nil(t, in)
				require.Nil(t, out)
				return
			}
			require.Equal(t, n, in)
			require.Same(t, open[tt.place], out)
			require.Len(t, g.open, 3)
			require.NoError(t, out.Close())
			require.NoError(t, out.Close())
			require.Len(t, g.open, 3, "what was dropped gives its place once")
		})
	}
}
