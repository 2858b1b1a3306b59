package fault

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/certificate"
)

// absent is a component without a process, which notes what is done to it.
type absent struct{ done atomic.Value }

func (n *absent) Kill()                { n.done.Store("killed") }
func (n *absent) Stop()                { n.done.Store("stopped") }
func (n *absent) Continue()            {}
func (n *absent) Freeze(time.Duration) { n.done.Store("frozen") }
func (n *absent) Replace()             { n.done.Store("replaced") }
func (n *absent) Renew()               {}

// proxied is a proxy with one fault, and a client that trusts it.
type proxied struct {
	*Proxy
	http    http.Client
	applied atomic.Int64 // writes that reached the server
	path    atomic.Value // of the last request
	absent
}

func newProxied(t *testing.T, k Kind, at string) *proxied {
	t.Helper()
	p := &proxied{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.path.Store(r.URL.Path)
		if r.Method != http.MethodGet {
			p.applied.Add(1)
		}
		if r.URL.Query().Get("watch") != "" {
			for i := range 3 {
				_, _ = fmt.Fprintf(w, "{\"type\":\"ADDED\",\"object\":{\"n\":%d}}\n", i+1)
			}
			return
		}
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	issue := func(at time.Time) *tls.Certificate {
		b, _, err := certificate.Policy{Name: "x", Hosts: []string{serverName}}.Renew(certificate.Bundle{}, at)
		require.NoError(t, err)
		roots.AppendCertsFromPEM(b.Authorities)
		pair, err := b.KeyPair()
		require.NoError(t, err)
		return pair
	}
	c := ProxyConfig{Transport: http.DefaultTransport, Namespace: "ns", Certificate: issue(time.Now()), Overdue: issue(time.Now().AddDate(-20, 0, 0)), Kind: k, Process: &p.absent}
	var err error
	c.Server, err = url.Parse(server.URL)
	require.NoError(t, err)
	if at != "" {
		c.Step, err = ParseStep(at)
		require.NoError(t, err)
	}
	p.Proxy, err = NewProxy(c)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	p.http.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: serverName}}
	t.Cleanup(p.http.CloseIdleConnections)
	return p
}

// answered is the answer to a write.
type answered struct {
	code       int
	retryAfter string
	err        error
}

// create sends a write that is not sent again by the client.
func (p *proxied) create() answered {
	resp, err := p.http.Post(p.URL()+"/api/v1/namespaces/ns/pods", "application/json", strings.NewReader("{}"))
	if err != nil {
		return answered{err: err}
	}
	return answered{resp.StatusCode, resp.Header.Get("Retry-After"), resp.Body.Close()}
}

func (p *proxied) watch(t *testing.T, each func(line string)) {
	t.Helper()
	resp, err := p.http.Get(p.URL() + "/api/v1/pods?watch=true")
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		each(lines.Text())
	}
}

func TestAFaultOfAnAnswerIsInjectedAtItsStepOnly(t *testing.T) {
	t.Parallel()
	for kind, want := range map[Kind]struct {
		code    int
		applied int64
	}{Unavailable: {503, 2}, Conflict: {409, 2}, Lost: {0, 3}, Killed: {0, 2}, KilledAfter: {0, 3}} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			p := newProxied(t, kind, "create pods #2")
			for i := 1; i <= 3; i++ {
				a := p.create()
				switch {
				case i != 2:
					require.Equal(t, answered{code: 200}, a)
				case want.code == 0:
					require.Error(t, a.err)
				default:
					require.Equal(t, answered{code: want.code}, a)
				}
			}
			require.Equal(t, want.applied, p.applied.Load())
			require.True(t, p.Hit())
			require.Equal(t, map[string]int{"create pods": 3}, p.Counts())
			require.Equal(t, kind == Killed || kind == KilledAfter, p.done.Load() == "killed")
		})
	}
}

func TestAFaultThatLastsEnds(t *testing.T) {
	t.Parallel()
	refused := func(a answered) bool { return errors.Is(a.err, syscall.ECONNREFUSED) }
	overdue := func(a answered) bool {
		invalid := x509.CertificateInvalidError{}
		return errors.As(a.err, &invalid) && invalid.Reason == x509.Expired
	}
	throttled := func(a answered) bool { return a == answered{code: 429, retryAfter: "1"} }
	for kind, during := range map[Kind]func(answered) bool{Refused: refused, Certificate: overdue, Throttled: throttled} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			p := newProxied(t, kind, "create pods #1")
			p.create()
			require.True(t, during(p.create()))
			require.Eventually(t, func() bool {
				return p.create() == answered{code: 200}
			}, time.Minute, 50*time.Millisecond)
		})
	}
}

func TestAWatchIsConfinedAndEndsOrWaitsAtAnEvent(t *testing.T) {
	t.Parallel()
	p := newProxied(t, Expired, "event pods #2")
	var lines []string
	p.watch(t, func(line string) { lines = append(lines, line) })
	require.Len(t, lines, 2)
	require.Contains(t, lines[0], `"n":1`)
	require.Contains(t, lines[1], `"code":410`)
	require.Equal(t, "/api/v1/namespaces/ns/pods", p.path.Load())

	p = newProxied(t, Stale, "event pods #2")
	began := time.Now()
	var after []time.Duration
	p.watch(t, func(string) { after = append(after, time.Since(began)) })
	require.Len(t, after, 3)
	require.Less(t, after[0], staleFor)
	require.GreaterOrEqual(t, after[1], staleFor)
}
