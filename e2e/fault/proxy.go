package fault

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProxyConfig is what a [Proxy] needs.
type ProxyConfig struct {
	// Server is the address of the API server, and Transport trusts it. Required.
	Server    *url.URL
	Transport http.RoundTripper
	// Addr is where it listens. Empty: at a free port of 127.0.0.1.
	Addr string
	// Namespace confines the component: what it asks about all namespaces is answered for
	// this one. Empty: it is not confined.
	Namespace string
	// Accounts is the namespace of the accounts whose tokens the component asks for. Empty:
	// that of the request.
	Accounts string
	// Apart is the name of an object whose steps have names of their own. Empty: none has.
	Apart string
	// Certificate is what the component trusts, and Overdue the same, expired. Required.
	Certificate, Overdue *tls.Certificate
	// Kind and Step are what is injected, and where. An empty Kind: nothing is.
	Kind Kind
	Step Step
	// Process does to the component what is a fault of its process. Required.
	Process Component
}

// Component is the process whose requests a Proxy passes on.
type Component interface {
	// Kill ends the process. It is started again.
	Kill()
	// Stop and Continue are SIGSTOP and SIGCONT.
	Stop()
	Continue()
	// Freeze stops its launchers for a time.
	Freeze(d time.Duration)
	// Replace starts another process, and returns when it leads.
	Replace()
	// Renew gives the component another token.
	Renew()
}

// Proxy passes the requests of one component on to the API server, and injects one fault.
// Its methods may be called from any goroutine.
type Proxy struct {
	cfg    ProxyConfig
	addr   string
	server *http.Server

	mu       sync.Mutex
	listener net.Listener
	closed   bool
	counts   map[string]int
	hit      bool
	conns    map[net.Conn]bool
	until    map[Kind]time.Time // the end of a fault that lasts
	refused  string             // the token that is refused
	held     string             // the resource whose watches bring nothing
}

// NewProxy listens. Close ends it.
func NewProxy(c ProxyConfig) (*Proxy, error) {
	p := &Proxy{cfg: c, counts: map[string]int{}, conns: map[net.Conn]bool{}, until: map[Kind]time.Time{}, addr: cmp.Or(c.Addr, "127.0.0.1:0")}
	p.server = &http.Server{Handler: p, ErrorLog: log.New(io.Discard, "", 0), ConnState: p.follow, ReadHeaderTimeout: time.Minute}
	if err := p.listen(); err != nil {
		return nil, err
	}
	p.addr = p.listener.Addr().String()
	return p, nil
}

// URL is where the component finds its API server.
func (p *Proxy) URL() string { return "https://" + p.addr }

// Counts are how many steps of each name there were.
func (p *Proxy) Counts() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

// Hit reports whether the fault was injected.
func (p *Proxy) Hit() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hit
}

// Close ends all connections.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.server.Close()
}

func (p *Proxy) listen() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return net.ErrClosed
	}
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		return err
	}
	p.listener = l
	// Without HTTP/2 a request that is not answered closes its own connection only.
	go func() {
		_ = p.server.Serve(tls.NewListener(l, &tls.Config{GetCertificate: p.certificate, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS13}))
	}()
	return nil
}

// follow keeps the list of connections.
func (p *Proxy) follow(c net.Conn, s http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch s {
	case http.StateNew:
		p.conns[c] = true
	case http.StateClosed, http.StateHijacked:
		delete(p.conns, c)
	}
}

func (p *Proxy) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if p.lasts(Certificate) {
		return p.cfg.Overdue, nil
	}
	return p.cfg.Certificate, nil
}

// lasts reports whether a fault of the kind was injected and goes on.
func (p *Proxy) lasts(k Kind) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Before(p.until[k])
}

func (p *Proxy) begin(k Kind, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until[k] = time.Now().Add(d)
}

// disconnect closes all connections.
func (p *Proxy) disconnect() {
	p.mu.Lock()
	all := maps.Clone(p.conns)
	p.mu.Unlock()
	for c := range all {
		_ = c.Close()
	}
}

// refuse stops to listen for a time.
func (p *Proxy) refuse() {
	p.mu.Lock()
	_ = p.listener.Close()
	p.mu.Unlock()
	p.disconnect()
	time.AfterFunc(refusedFor, func() {
		for p.listen() != nil && !p.isClosed() { // the address was taken for a moment
			time.Sleep(10 * time.Millisecond)
		}
	})
}

func (p *Proxy) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// reached counts a step and returns the fault that is to be injected at it.
func (p *Proxy) reached(name string) Kind {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[name]++
	if p.cfg.Kind == "" || p.hit || p.cfg.Step != (Step{name, p.counts[name]}) {
		return ""
	}
	p.hit = true
	return p.cfg.Kind
}

// drop closes the connection of the request without an answer.
func drop() { panic(http.ErrAbortHandler) }

// ServeHTTP passes one request on.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := parse(r)
	kind := p.reached(q.name(p.cfg.Apart))
	switch kind {
	case Refused:
		p.refuse()
		drop()
	case Certificate:
		p.begin(Certificate, certificateFor)
		p.disconnect()
		drop()
	case Killed:
		p.cfg.Process.Kill()
		drop()
	case Throttled:
		p.begin(Throttled, throttledFor)
	case Token:
		p.expire(r.Header.Get("Authorization"))
	case Unavailable:
		fail(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the server is currently unable to handle the request")
		return
	case Conflict:
		fail(w, http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified; please apply your changes to the latest version and try again")
		return
	case Expired:
		fail(w, http.StatusGone, metav1.StatusReasonExpired, tooOld)
		return
	case Delayed:
		time.Sleep(delayedBy)
	case Frozen:
		p.cfg.Process.Freeze(stoppedFor)
	case Replaced:
		p.cfg.Process.Stop()
		p.cfg.Process.Replace()
	}
	switch {
	case p.lasts(Throttled):
		w.Header().Set("Retry-After", "1")
		fail(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests, please try again later")
		return
	case p.isRefused(r.Header.Get("Authorization")):
		fail(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized")
		return
	}
	p.pass(w, r, q, kind)
}

const tooOld = "too old resource version"

// expire refuses a token, and gives the component another one soon.
func (p *Proxy) expire(authorization string) {
	p.mu.Lock()
	p.refused = authorization
	p.mu.Unlock()
	time.AfterFunc(tokenFor, p.cfg.Process.Renew)
}

func (p *Proxy) isRefused(authorization string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused != "" && p.refused == authorization
}

// fail answers as the API server does.
func fail(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(status(code, reason, message))
}

func status(code int, reason metav1.StatusReason, message string) []byte {
	text, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
	if err != nil {
		panic(err) // it has nothing that cannot be encoded
	}
	return text
}

// pass asks the API server and passes its answer on.
func (p *Proxy) pass(w http.ResponseWriter, r *http.Request, q request, kind Kind) {
	ctx := r.Context()
	if q.verb != "watch" {
		ctx = context.WithoutCancel(ctx) // what was sent is applied, also when the component dies
	}
	out := r.Clone(ctx)
	out.RequestURI, out.Host = "", ""
	out.URL.Scheme, out.URL.Host = p.cfg.Server.Scheme, p.cfg.Server.Host
	if path := q.within(p.cfg.Namespace); path != "" && p.cfg.Namespace != "" {
		out.URL.Path = path
	}
	if p.cfg.Accounts != "" && q.resource == "serviceaccounts/token" {
		out.URL.Path = q.root + "/namespaces/" + p.cfg.Accounts + "/" + q.rest
	}
	out.Header.Set("Accept", asJSON(r.Header.Get("Accept")))
	out.Header.Del("Accept-Encoding") // the transport's own
	resp, err := p.cfg.Transport.RoundTrip(out)
	if err != nil {
		drop()
	}
	defer func() { _ = resp.Body.Close() }()
	switch kind {
	case Lost:
		drop()
	case KilledAfter:
		p.cfg.Process.Kill()
		drop()
	case Stopped:
		p.cfg.Process.Stop()
		time.AfterFunc(stoppedFor, p.cfg.Process.Continue)
	case Replaced:
		p.cfg.Process.Continue()
	}
	maps.Copy(w.Header(), resp.Header)
	w.Header().Del("Content-Length")
	w.WriteHeader(resp.StatusCode)
	if q.verb == "watch" && resp.StatusCode == http.StatusOK {
		p.watch(ctx, w, resp.Body, q)
		return
	}
	_, _ = io.Copy(w, resp.Body) // the component may be gone
}

// asJSON is the header Accept without what is not JSON: events are read here.
func asJSON(accept string) string {
	var kept []string
	for part := range strings.SplitSeq(accept, ",") {
		if part = strings.TrimSpace(part); strings.HasPrefix(part, "application/json") {
			kept = append(kept, part)
		}
	}
	if len(kept) == 0 {
		return "application/json"
	}
	return strings.Join(kept, ",")
}

// watch passes on event by event.
func (p *Proxy) watch(ctx context.Context, w http.ResponseWriter, body io.Reader, q request) {
	flush := func() { _ = http.NewResponseController(w).Flush() }
	flush()
	for d := json.NewDecoder(body); ; {
		var e json.RawMessage
		if err := d.Decode(&e); err != nil {
			if !errors.Is(err, io.EOF) {
				drop() // it was broken off, as far as the component is concerned too
			}
			return
		}
		if !isBookmark(e) {
			switch p.reached(event + " " + q.resource) {
			case Expired:
				_, _ = fmt.Fprintf(w, "{\"type\":\"ERROR\",\"object\":%s}\n", status(http.StatusGone, metav1.StatusReasonExpired, tooOld))
				return
			case Stale:
				p.hold(q.resource)
			}
		}
		p.await(ctx, q.resource)
		if _, err := w.Write(append(e, '\n')); err != nil {
			return
		}
		flush()
	}
}

func isBookmark(e []byte) bool {
	var of struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(e, &of) == nil && of.Type == "BOOKMARK"
}

// hold holds back the events of a resource.
func (p *Proxy) hold(resource string) {
	p.begin(Stale, staleFor)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = resource
}

// await returns when events of the resource are not held back, or are not waited for.
func (p *Proxy) await(ctx context.Context, resource string) {
	p.mu.Lock()
	left := time.Duration(0)
	if p.held == resource {
		left = time.Until(p.until[Stale])
	}
	p.mu.Unlock()
	select {
	case <-time.After(left):
	case <-ctx.Done():
	}
}

// Review reports whether the component answers a review about a resource that the API server asks for.
func (p *Proxy) Review(resource string) bool {
	if p.reached(review+" "+resource) == Webhook {
		p.begin(Webhook, webhookFor)
	}
	return !p.lasts(Webhook)
}
