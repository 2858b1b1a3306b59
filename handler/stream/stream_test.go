package stream

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/internal/carry"
	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

const user = "system:serviceaccount:kubevirt:virt-controller"

// api is as much of an API server as the road needs.
type api struct {
	t    testing.TB
	kube kubernetes.Interface
	ip   string // of the handler

	mu       sync.Mutex
	hash     string // the annotation of every node
	address  string // its annotation of migrations
	issued   map[string]authenticationv1.TokenReviewStatus
	requests int // of tokens
	reviews  int
}

func newAPI(t testing.TB) *api {
	t.Helper()
	// No other test gets the port of a handler that was stopped, at an address of its own, and
	// no other process: the kernel gives none below 32768 away.
	a := &api{t: t, ip: fmt.Sprintf("127.%d.%d.%d", 1+rand.N(254), rand.N(255), 1+rand.N(254)), issued: map[string]authenticationv1.TokenReviewStatus{}}
	s := httptest.NewServer(a)
	t.Cleanup(s.Close)
	var err error
	a.kube, err = kubernetes.NewForConfig(&rest.Config{Host: s.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	require.NoError(t, err)
	return a
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out any
	switch path := r.URL.Path; {
	case r.Method == http.MethodGet && strings.HasPrefix(path, "/api/v1/nodes/"):
		n := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: strings.TrimPrefix(path, "/api/v1/nodes/")}}
		if a.hash != "" {
			n.Annotations = map[string]string{CertificateAnnotation: a.hash, MigrationAddressAnnotation: a.address}
		}
		out = n
	case r.Method == http.MethodGet && path == "/api/v1/namespaces/kubevirt/pods":
		p := corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: a.ip}}
		out = &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{p}}
	case path == "/api/v1/namespaces/kubevirt/serviceaccounts/virt-controller/token":
		var q authenticationv1.TokenRequest
		if json.NewDecoder(r.Body).Decode(&q) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		a.requests++
		q.Status.Token = signed(fmt.Sprintf("token-%d", a.requests), user, q.Spec.BoundObjectRef.Name, q.Spec.Audiences...)
		q.Status.ExpirationTimestamp = metav1.NewTime(time.Now().Add(time.Duration(*q.Spec.ExpirationSeconds) * time.Second))
		a.issue(q.Status.Token, user, q.Spec.BoundObjectRef.Name, q.Spec.Audiences...)
		out = &q
	case path == "/apis/authentication.k8s.io/v1/tokenreviews":
		var q authenticationv1.TokenReview
		if json.NewDecoder(r.Body).Decode(&q) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		a.reviews++
		known := a.issued[q.Spec.Token]
		for _, audience := range q.Spec.Audiences {
			for _, own := range known.Audiences {
				if own == audience {
					q.Status = known
				}
			}
		}
		out = &q
	default:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}

// signed is a token with these claims, which differs by its name.
func signed(name, account, pod string, audiences ...string) string {
	claims := map[string]any{"sub": account, "aud": audiences, "kubernetes.io": map[string]any{"pod": map[string]any{"name": pod}}}
	text, _ := json.Marshal(claims)
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"RS256"}`)) + "." + part(text) + "." + part([]byte(name))
}

// issue makes a token known. The lock is held.
func (a *api) issue(token, account, pod string, audiences ...string) {
	s := authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: audiences, User: authenticationv1.UserInfo{Username: account}}
	if pod != "" {
		s.User.Extra = map[string]authenticationv1.ExtraValue{podName: {pod}}
	}
	a.issued[token] = s
}

// guests are VMIs whose console echoes, and whose calls answer with what they are asked.
type guests struct {
	open, opened, called atomic.Int64
	begins               func(net.Conn) // nil: it echoes
}

func (g *guests) Stream(_ context.Context, of protocol.Target, s protocol.Stream) (net.Conn, error) {
	switch {
	case of.Namespace != "default" || of.UID != "u1":
		return nil, transport.Refusal(protocol.ReasonNotFound, "no VMI %s on this node", of.Key())
	case s == protocol.StreamScreenIfFree:
		return nil, transport.Refusal(protocol.ReasonBusy, "the screen is in use")
	}
	near, far := net.Pipe()
	g.open.Add(1)
	g.opened.Add(1)
	go func() {
		defer g.open.Add(-1)
		defer far.Close()
		if g.begins != nil {
			g.begins(far)
			return
		}
		_ = carry.Copy(far, far)
	}()
	return near, nil
}

func (g *guests) Call(_ context.Context, of protocol.Target, call protocol.Call, options json.RawMessage) (json.RawMessage, error) {
	g.called.Add(1)
	switch {
	case of.UID != "u1":
		return nil, transport.Refusal(protocol.ReasonNotFound, "no such VMI")
	case call == protocol.CallPause:
		return nil, nil
	case call == protocol.CallUserList:
		return nil, transport.Refusal(protocol.ReasonNoAgent, "no agent")
	}
	return json.Marshal(map[string]any{"call": call, "options": options, "pod": of.Pod})
}

// road is an API server, a handler of node n1 and a Dialer.
type road struct {
	*api
	guests *guests
	addr   string
	dialer *Dialer
	stop   func()
}

func newRoad(t testing.TB, change ...func(*ServerConfig)) *road {
	t.Helper()
	r := &road{api: newAPI(t), guests: &guests{}}
	r.serve(net.JoinHostPort(r.ip, "8186"), change...) // where a Dialer expects it
	tokens := &Tokens{Accounts: r.kube.CoreV1().ServiceAccounts("kubevirt"), Account: "virt-controller", PodName: "virt-controller-1", PodUID: "p1"}
	r.dialer = NewDialer(DialerConfig{Nodes: r.kube.CoreV1().Nodes(), Handlers: r.kube.CoreV1().Pods("kubevirt"), Token: tokens.Token, Refused: tokens.Forget})
	return r
}

// serve starts a handler, which has a certificate of its own.
func (r *road) serve(addr string, change ...func(*ServerConfig)) {
	t := r.t
	t.Helper()
	cert, err := NewCertificate(time.Now())
	require.NoError(t, err)
	reviews := NewReviews(ReviewsConfig{Client: r.kube.AuthenticationV1().TokenReviews(), Node: "n1", User: user})
	config := ServerConfig{Guests: r.guests, Admit: reviews.Admit, Certificate: cert}
	for _, f := range change {
		f(&config)
	}
	l, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	r.addr = l.Addr().String()
	r.mu.Lock()
	r.hash = cert.Hash
	r.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- NewServer(config).Serve(ctx, l) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(r.stop)
}

// on is the VMI of the guests, on the node.
func on(node string) *vmi.VirtualMachineInstance {
	return &vmi.VirtualMachineInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "vm", UID: "u1"},
		Status:     vmi.VirtualMachineInstanceStatus{NodeName: node, ActivePods: map[types.UID]string{"pod-1": node, "pod-2": "n2"}},
	}
}

// echoes requires that what is written to the stream comes back.
func echoes(t testing.TB, conn net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(conn, text)
	require.NoError(t, err)
	b := make([]byte, len(text))
	_, err = io.ReadFull(conn, b)
	require.NoError(t, err)
	require.Equal(t, text, string(b))
}

func requireRefusal(t *testing.T, err error, reason string) {
	t.Helper()
	var r *vmi.Refusal
	require.ErrorAs(t, err, &r)
	require.Equal(t, reason, r.Reason, r.Message)
}

func TestAStreamReachesTheGuestAndEndsWithEitherSide(t *testing.T) {
	t.Parallel()
	r := newRoad(t)
	conn, err := r.dialer.Stream(t.Context(), on("n1"), "console")
	require.NoError(t, err)
	echoes(t, conn, "hello")
	require.NoError(t, conn.Close())
	require.Eventually(t, func() bool { return r.guests.open.Load() == 0 }, time.Minute, 5*time.Millisecond, "it ends at the guest")

	conn, err = r.dialer.Stream(t.Context(), on("n1"), "console")
	require.NoError(t, err)
	defer conn.Close()
	r.stop()
	_, err = conn.Read(make([]byte, 1))
	require.Error(t, err, "it ends with the handler")
	require.Eventually(t, func() bool { return r.guests.open.Load() == 0 }, time.Minute, 5*time.Millisecond)
	require.Equal(t, 1, r.requests, "one token for both")
	require.Equal(t, 1, r.reviews, "one review for both")
}

func TestTheNextStreamWorksWhenTheHandlerWasReplaced(t *testing.T) {
	t.Parallel()
	r := newRoad(t)
	before, err := r.dialer.Stream(t.Context(), on("n1"), "console")
	require.NoError(t, err)
	defer before.Close()
	r.stop()
	_, err = r.dialer.Stream(t.Context(), on("n1"), "console")
	requireRefusal(t, err, protocol.ReasonUnavailable)
	r.serve(r.addr)
	next, err := r.dialer.Stream(t.Context(), on("n1"), "console")
	require.NoError(t, err)
	defer next.Close()
	echoes(t, next, "again")
}

func TestCallsHaveOptionsAnswersAndReasons(t *testing.T) {
	t.Parallel()
	r := newRoad(t)
	require.NoError(t, r.dialer.Call(t.Context(), on("n1"), "pause", nil, nil))
	var answer struct {
		Call    string
		Options map[string]int
	}
	require.NoError(t, r.dialer.Call(t.Context(), on("n1"), "freeze", map[string]int{"a": 1}, &answer))
	require.Equal(t, "freeze", answer.Call)
	require.Equal(t, map[string]int{"a": 1}, answer.Options)
	requireRefusal(t, r.dialer.Call(t.Context(), on("n1"), "userlist", nil, nil), protocol.ReasonNoAgent)
	requireRefusal(t, r.dialer.Call(t.Context(), on("n1"), "freeze", strings.Repeat("x", protocol.MaxOptions), nil), protocol.ReasonTooLarge)
	_, err := r.dialer.Stream(t.Context(), on("n1"), "screen-if-free")
	requireRefusal(t, err, protocol.ReasonBusy)
	other := on("n1")
	other.UID = "u2"
	_, err = r.dialer.Stream(t.Context(), other, "console")
	requireRefusal(t, err, protocol.ReasonNotFound)
	_, err = r.dialer.Stream(t.Context(), on(""), "console")
	requireRefusal(t, err, protocol.ReasonNotFound)
}

func TestARequestNamesThePodAndReachesTheHandlerOfItsNode(t *testing.T) {
	t.Parallel()
	r := newRoad(t)
	asked := func(d *Dialer, v *vmi.VirtualMachineInstance) (pod string, err error) {
		var answer struct{ Pod string }
		err = d.Call(t.Context(), v, "freeze", map[string]int{}, &answer)
		return answer.Pod, err
	}
	pod, err := asked(r.dialer, on("n1"))
	require.NoError(t, err)
	require.Equal(t, "pod-1", pod, "the one that the VMI runs in")
	moved := on("n1")
	moved.Status.NodeName = "n2"
	pod, err = asked(r.dialer.Of("pod-1"), moved)
	require.NoError(t, err)
	require.Equal(t, "pod-1", pod, "another one, on another node than the VMI's")
	_, err = asked(r.dialer.Of("pod-2"), on("n1"))
	require.ErrorContains(t, err, "the token is none for "+Audience("n1"), "the token is for the handler of the pod's node")
	_, err = asked(r.dialer.Of("pod-3"), on("n1"))
	requireRefusal(t, err, protocol.ReasonNotFound)
	require.ErrorContains(t, err, "pod-3 is none of its pods")

	older := on("n1")
	older.Status.ActivePods = nil
	pod, err = asked(r.dialer, older)
	require.NoError(t, err)
	require.Empty(t, pod, "a status without pods leaves the choice to the handler")
}

// ask sends a request to the handler as a stranger does, and returns the code of the
// response.
func (r *road) ask(header ...string) int {
	r.t.Helper()
	conn, err := tls.Dial("tcp", r.addr, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // a stranger
	require.NoError(r.t, err)
	defer conn.Close()
	require.NoError(r.t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: %s\r\n%s\r\n",
		protocol.Path{Target: target(on("n1"), "pod-1"), Stream: protocol.StreamConsole}, protocol.StreamUpgrade, strings.Join(header, ""))
	require.NoError(r.t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(r.t, err)
	defer resp.Body.Close()
	return resp.StatusCode
}

func TestAttackAStrangerOpensNoStream(t *testing.T) {
	t.Parallel()
	r := newRoad(t)
	strangers := map[string]struct{ account, pod, audience string }{
		"of-a-tenant":        {"system:serviceaccount:default:virt-controller", "p", Audience("n1")},
		"of-the-handler":     {"system:serviceaccount:kubevirt:virt-handler", "p", Audience("n1")},
		"of-no-pod":          {user, "", Audience("n1")},
		"for-another-node":   {user, "p", Audience("n2")},
		"for-the-api-server": {user, "p", "https://kubernetes.default.svc"},
	}
	right := signed("right", user, "p", Audience("n1"))
	says := func(name string) string {
		return signed(name, strangers[name].account, strangers[name].pod, strangers[name].audience)
	}
	lies := func(name string) string { return signed(name, user, "p", Audience("n1")) }
	r.mu.Lock()
	for name, s := range strangers {
		r.issue(says(name), s.account, s.pod, s.audience)
		r.issue(lies(name), s.account, s.pod, s.audience)
	}
	r.issue(right, user, "p", Audience("n1"))
	r.mu.Unlock()
	bearer := func(token string) string { return "Authorization: Bearer " + token + "\r\n" }
	require.Equal(t, 401, r.ask(), "no token")
	require.Equal(t, 401, r.ask("Authorization: Basic "+right+"\r\n"))
	require.Equal(t, 401, r.ask(bearer("")))
	require.Equal(t, 401, r.ask(bearer(strings.Repeat("x", 8<<10+1))))
	require.Equal(t, 401, r.ask(bearer(says("of-a-tenant")), bearer(right)), "two tokens")
	for name := range strangers {
		require.Equal(t, 401, r.ask(bearer(says(name))), name)
	}
	require.Zero(t, r.reviews, "none of them says that it is for this handler")
	require.Equal(t, 401, r.ask(bearer(signed("unknown", user, "p", Audience("n1")))))
	for name := range strangers {
		require.Equal(t, 401, r.ask(bearer(lies(name))), name)
	}
	require.Equal(t, 1+len(strangers), r.reviews)
	require.Zero(t, r.guests.open.Load())
	require.Equal(t, 101, r.ask(bearer(right)))
}

func TestAttackATokenIsSentToNoServerWithAnotherCertificate(t *testing.T) {
	t.Parallel()
	r := newRoad(t)
	other, err := NewCertificate(time.Now())
	require.NoError(t, err)
	r.mu.Lock()
	r.hash = other.Hash
	r.mu.Unlock()
	_, err = r.dialer.Stream(t.Context(), on("n1"), "console")
	requireRefusal(t, err, protocol.ReasonUnavailable)
	require.ErrorContains(t, err, errCertificate.Error())
	require.Zero(t, r.reviews, "the server has seen no token")
	r.mu.Lock()
	r.hash = ""
	r.mu.Unlock()
	_, err = r.dialer.Stream(t.Context(), on("n1"), "console")
	require.ErrorContains(t, err, "has no annotation "+CertificateAnnotation)
}

func TestAttackHalfOpenConnectionsKeepNoStreamOut(t *testing.T) {
	t.Parallel()
	r := newRoad(t)
	for range 1000 {
		conn, err := net.Dial("tcp", r.addr)
		require.NoError(t, err)
		defer conn.Close()
	}
	conn, err := r.dialer.Stream(t.Context(), on("n1"), "console")
	require.NoError(t, err)
	defer conn.Close()
	echoes(t, conn, "hello")
}

func TestAttackAGuestThatWritesWithoutEndAndAReaderThatReadsNothingStallNoOther(t *testing.T) {
	t.Parallel()
	r := newRoad(t)
	var flood atomic.Bool
	flood.Store(true)
	var floods atomic.Int64
	r.guests.begins = func(far net.Conn) {
		if !flood.Load() {
			_ = carry.Copy(far, far)
			return
		}
		floods.Add(1)
		for b := make([]byte, 64<<10); ; {
			if _, err := far.Write(b); err != nil {
				return
			}
		}
	}
	for range 8 {
		slow, err := r.dialer.Stream(t.Context(), on("n1"), "console") // and it is not read
		require.NoError(t, err)
		defer slow.Close()
	}
	require.Eventually(t, func() bool { return floods.Load() == 8 }, time.Minute, time.Millisecond)
	flood.Store(false)
	conn, err := r.dialer.Stream(t.Context(), on("n1"), "console")
	require.NoError(t, err)
	defer conn.Close()
	echoes(t, conn, "hello")
	require.NoError(t, r.dialer.Call(t.Context(), on("n1"), "pause", nil, nil))
}

func TestStreamsAreBoundedInNumber(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		limit func(*ServerConfig)
		says  string
	}{
		{"of a VMI", func(c *ServerConfig) { c.StreamsPerVMI = 2 }, "2 streams of the VMI are open"},
		{"in all", func(c *ServerConfig) { c.Streams = 2 }, "2 streams of VMIs on this node are open"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRoad(t, tt.limit)
			var open []net.Conn
			for range 2 {
				conn, err := r.dialer.Stream(t.Context(), on("n1"), "console")
				require.NoError(t, err)
				defer conn.Close()
				open = append(open, conn)
			}
			_, err := r.dialer.Stream(t.Context(), on("n1"), "console")
			requireRefusal(t, err, protocol.ReasonBusy)
			require.ErrorContains(t, err, tt.says)
			require.NoError(t, open[0].Close())
			require.Eventually(t, func() bool {
				conn, err := r.dialer.Stream(t.Context(), on("n1"), "console")
				return err == nil && conn.Close() == nil
			}, time.Minute, 5*time.Millisecond)
		})
	}
}
