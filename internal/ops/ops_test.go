package ops

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// everyone is a guard that lets everyone in.
func everyone(h http.Handler) http.Handler { return h }

func TestHealth(t *testing.T) {
	t.Parallel()
	var fault error
	h := Endpoint{
		Metrics: Registry(),
		Healthy: func() error { return fault },
		Ready:   func() error { return nil },
		Facts:   func() map[string]string { return map[string]string{"config-resource-version": "7"} },
	}.Handler()
	tests := []struct {
		name, path string
		fault      error
		code       int
		body       string
	}{
		{"a component that works answers with its facts", "/healthz", nil, 200, `{"config-resource-version":"7"}`},
		{"a doubled slash does not matter", "//healthz", nil, 200, `{"config-resource-version":"7"}`},
		{"a component that does not work answers with the reason", "/healthz", errors.New("no leader"), 500, `{"config-resource-version":"7","error":"no leader"}`},
		{"which is a reason not to be ready", "/readyz", errors.New("no leader"), 500, `{"config-resource-version":"7","error":"no leader"}`},
		{"a component that works is ready", "/readyz", nil, 200, `{"config-resource-version":"7"}`},
		{"another path is not found", "/nosuch", nil, 404, "404 page not found"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fault = tt.fault
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "https://pod"+tt.path, nil))
			require.Equal(t, tt.code, w.Code)
			require.Equal(t, tt.body, string(bytes.TrimSpace(w.Body.Bytes())))
		})
	}
}

func TestAComponentMayBeHealthyAndNotReady(t *testing.T) {
	t.Parallel()
	h := Endpoint{Ready: func() error { return errors.New("the cache is empty") }}.Handler()
	for path, code := range map[string]int{"/healthz": 200, "/readyz": 500} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "https://pod"+path, nil))
		require.Equal(t, code, w.Code, path)
	}
}

func TestTheGuardIsOfTheMetricsAlone(t *testing.T) {
	t.Parallel()
	refuses := func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no token", http.StatusUnauthorized) })
	}
	for name, tt := range map[string]struct {
		guard func(http.Handler) http.Handler
		want  int
	}{"that refuses": {refuses, 401}, "that lets in": {everyone, 200}, "that is missing": {nil, 404}} {
		h := Endpoint{Metrics: Registry(), Guard: tt.guard}.Handler()
		for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": tt.want, "//metrics": tt.want, "/healthz/../metrics": tt.want} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "https://pod"+path, nil))
			require.Equal(t, want, w.Code, "%s of a guard %s", path, name)
			require.Equal(t, want == 200 && strings.HasSuffix(path, "metrics"), strings.Contains(w.Body.String(), "go_goroutines"))
		}
	}
}

func TestServeAnswersOverTLSUntilTheContextEnds(t *testing.T) {
	t.Parallel()
	cert, err := selfSigned(time.Now())
	require.NoError(t, err)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- serve(ctx, l, Endpoint{Metrics: Registry(), Guard: everyone}) }()

	c := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	resp, err := c.Get("https://" + l.Addr().String() + "/metrics")
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Contains(t, string(body), "go_goroutines")

	cancel()
	require.NoError(t, <-done)
}

func TestServeSaysWhereItCannotListen(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, Serve(t.Context(), Endpoint{Addr: "nowhere:x"}), "listen on nowhere:x")
}

func TestRequestsAreCounted(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusConflict) }))
	defer s.Close()
	c := http.Client{Transport: CountRequests(reg)(http.DefaultTransport)}
	req, err := http.NewRequest(http.MethodPatch, s.URL+"/apis/kubevirt.io/v1/namespaces/ns/virtualmachineinstances/vm/status", nil)
	require.NoError(t, err)
	resp, err := c.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())

	all, err := reg.Gather()
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, Requests.Name, all[0].GetName())
	labels := map[string]string{}
	for _, l := range all[0].GetMetric()[0].GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	require.Equal(t, map[string]string{"method": "PATCH", "resource": "virtualmachineinstances", "subresource": "status", "code": "409"}, labels)
}

func TestResourceOf(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, path, resource, subresource string }{
		{"a list in a namespace", "/api/v1/namespaces/ns/pods", "pods", ""},
		{"one object", "/api/v1/namespaces/ns/pods/p", "pods", ""},
		{"a subresource", "/api/v1/namespaces/ns/pods/p/status", "pods", "status"},
		{"a node has no namespace", "/api/v1/nodes/n1", "nodes", ""},
		{"a namespace itself", "/api/v1/namespaces/ns", "namespaces", ""},
		{"the status of a namespace", "/api/v1/namespaces/ns/status", "namespaces", "status"},
		{"a group", "/apis/kubevirt.io/v1/virtualmachineinstances", "virtualmachineinstances", ""},
		{"discovery names nothing", "/apis/kubevirt.io/v1", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, s := resourceOf(tt.path)
			require.Equal(t, []string{tt.resource, tt.subresource}, []string{r, s})
		})
	}
}

func TestLogger(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	l, _, err := Logger(&b, "warn")
	require.NoError(t, err)
	l.Info("not this")
	l.Warn("this", "vmi", "ns/vm")
	var line map[string]any
	require.NoError(t, json.Unmarshal(b.Bytes(), &line))
	require.Equal(t, "ns/vm", line["vmi"])
	_, _, err = Logger(&b, "loud")
	require.Error(t, err)
}

func TestTogetherEndsAllWithTheFirst(t *testing.T) {
	t.Parallel()
	fault, late := errors.New("fault"), errors.New("late")
	err := Together(t.Context(),
		func(context.Context) error { return fault },
		func(ctx context.Context) error { <-ctx.Done(); return late },
		func(ctx context.Context) error { <-ctx.Done(); return nil })
	require.ErrorIs(t, err, fault)
	require.ErrorIs(t, err, late)
}

// pipes is a listener whose connections come from a channel, which it closes.
type pipes struct {
	conns chan net.Conn
	close func()
}

func newPipes() pipes {
	c := make(chan net.Conn)
	return pipes{c, sync.OnceFunc(func() { close(c) })}
}

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error {
	p.close()
	return nil
}

func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// Every pod in the cluster can connect, and must not be able to hold a connection.
func TestASlowClientIsDisconnected(t *testing.T) {
	const body = "POST /slow HTTP/1.1\r\nHost: pod\r\nContent-Length: 100\r\n\r\n"
	for name, says := range map[string]string{
		"nothing at all":                  "",
		"a part of a request":             "POST /slow HTTP/1.1\r\nHost",
		"a request, and then no body":     body,
		"a request, and none after it":    "GET /healthz HTTP/1.1\r\nHost: pod\r\n\r\n",
		"a request, and reads no answer!": "GET /long HTTP/1.1\r\nHost: pod\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				l := newPipes()
				var open atomic.Int32
				done := make(chan error, 1)
				go func() {
					done <- serve(ctx, l, Endpoint{Handlers: map[string]http.Handler{
						"/slow": http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
							open.Add(1)
							defer open.Add(-1)
							_, _ = io.ReadAll(r.Body)
						}),
						"/long": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
							open.Add(1)
							defer open.Add(-1)
							_, _ = w.Write(make([]byte, 1<<20))
						}),
					}})
				}()
				theirs, ours := net.Pipe()
				l.conns <- ours
				_, err := io.WriteString(theirs, says)
				require.NoError(t, err)
				if !strings.HasSuffix(name, "!") {
					go func() { _, _ = io.Copy(io.Discard, theirs) }()
				}
				time.Sleep(5 * time.Minute)
				busy := open.Load()
				_ = theirs.SetWriteDeadline(time.Now().Add(time.Second)) // fails if it is disconnected
				_, err = theirs.Write([]byte("x"))
				require.NoError(t, theirs.Close())
				cancel()
				require.NoError(t, <-done)
				require.ErrorIs(t, err, io.ErrClosedPipe, "it is disconnected")
				require.Zero(t, busy, "the handler has ended")
			})
		})
	}
}

// A VMI that starts costs virt-controller four requests and two events.
func TestTheLimitOfRequestsPermitsManyVMIsPerSecond(t *testing.T) {
	t.Parallel()
	l, began := NewLimiter(), time.Now()
	const perSecond, seconds = 100, 30
	for s := range seconds {
		require.True(t, l.AllowN(began.Add(time.Duration(s)*time.Second), 6*perSecond), "second %d", s)
	}
}

func TestOnlyKubernetesOwnKindsAreBinary(t *testing.T) {
	t.Parallel()
	c := &rest.Config{Host: "x"}
	b := Binary(c)
	require.Equal(t, "application/vnd.kubernetes.protobuf", b.ContentType)
	require.Equal(t, "application/vnd.kubernetes.protobuf,application/json", b.AcceptContentTypes)
	require.Empty(t, c.ContentType, "the configuration is shared")
}

func TestATokenThatIsRefusedIsReadAnew(t *testing.T) {
	t.Parallel()
	var valid atomic.Value
	valid.Store("Bearer first")
	var compressed atomic.Bool
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		compressed.Store(r.Header.Get("Accept-Encoding") != "")
		if r.Header.Get("Authorization") != valid.Load() {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(token, []byte("first\n"), 0o600))
	kubeconfig := filepath.Join(dir, "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: c,
contexts: [{name: c, context: {cluster: c, user: u}}], clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}], users: [{name: u, user: {tokenFile: %q}}]}`, server.URL, token), 0o600))
	cfg, err := Kubernetes(kubeconfig, "virt-test", prometheus.NewRegistry())
	require.NoError(t, err)
	c, err := rest.HTTPClientFor(cfg)
	require.NoError(t, err)
	get := func() int {
		resp, err := c.Get(server.URL)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	require.Equal(t, http.StatusOK, get())
	require.False(t, compressed.Load(), "an answer costs more than it saves if it is compressed")
	valid.Store("Bearer second")
	require.NoError(t, os.WriteFile(token, []byte("second\n"), 0o600))
	require.Equal(t, http.StatusUnauthorized, get(), "the token is kept")
	require.Equal(t, http.StatusOK, get())
}
