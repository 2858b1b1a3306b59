package fault

import (
	"bytes"
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
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/podvisor/podvisor/e2e/cluster/plan"
	manifests "github.com/podvisor/podvisor/e2e/install"
	"github.com/podvisor/podvisor/scheduler/admission"
	"github.com/podvisor/podvisor/vmi/client"
)

// reviews pass the reviews of the API server on to the component of the namespace that
// they are about. Without one they are not answered.
type reviews struct {
	// second plays the other replica of virt-controller for evictions.
	second admission.Evictions

	mu sync.Mutex
	to map[string]place
}

// evictionFor is how long a component has to answer the review of an eviction, before the other
// replica does. Without an answer an eviction is allowed, by design.
const evictionFor = 8 * time.Second

// place is where the webhooks of a namespace are served.
type place struct {
	proxy *Proxy
	addr  string
	next  http.Handler
}

// serve sends the reviews of a namespace to an address from now on.
func (r *reviews) serve(namespace, addr string, p *Proxy) {
	next := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "https", Host: addr})
	// Its certificate is that of the Secret, which the API server verifies here.
	next.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}}
	next.ErrorLog = log.New(io.Discard, "", 0)
	next.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { drop() }
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to[namespace] = place{p, addr, next}
}

// stop answers no more reviews of a namespace.
func (r *reviews) stop(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.to, namespace)
}

// verbs is a client that calls verbs where the webhooks of a namespace are served, as the
// aggregator does for an administrator.
func (r *reviews) verbs(namespace string) (*client.Client, error) {
	r.mu.Lock()
	at := r.to[namespace].addr
	r.mu.Unlock()
	pair := filepath.Join(filepath.Dir(world.cluster.Kubeconfig), "pki", "front-proxy-client")
	return client.New(&rest.Config{
		Host: "https://" + at, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true, CertFile: pair + ".crt", KeyFile: pair + ".key"},
		WrapTransport: func(next http.RoundTripper) http.RoundTripper {
			return transport.NewAuthProxyRoundTripper("admin", "", []string{"system:masters", "system:authenticated"}, nil, next)
		},
	})
}

func (r *reviews) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		drop()
	}
	var a admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &a); err != nil || a.Request == nil {
		drop()
	}
	r.mu.Lock()
	p, ok := r.to[a.Request.Namespace]
	r.mu.Unlock()
	ok = ok && p.proxy.Review(a.Request.Resource.Resource)
	q.Body = io.NopCloser(bytes.NewReader(body))
	switch {
	case a.Request.SubResource != "eviction" && ok:
		p.next.ServeHTTP(w, q)
	case a.Request.SubResource != "eviction":
		drop()
	case !ok || !p.answers(w, q):
		q.Body = io.NopCloser(bytes.NewReader(body))
		r.second.ServeHTTP(w, q)
	}
}

// answers passes a review on, and says whether it was answered in time.
func (p place) answers(w http.ResponseWriter, q *http.Request) (ok bool) {
	ctx, cancel := context.WithTimeout(q.Context(), evictionFor)
	defer cancel()
	answer := httptest.NewRecorder()
	defer func() {
		switch why := recover(); {
		case why != nil && why != any(http.ErrAbortHandler):
			panic(why)
		case why == nil:
			maps.Copy(w.Header(), answer.Header())
			w.WriteHeader(answer.Code)
			_, _ = w.Write(answer.Body.Bytes()) // the API server may be gone
			ok = true
		}
	}()
	p.next.ServeHTTP(answer, q.WithContext(ctx))
	return false
}

// answerReviews serves the webhooks of all namespaces where the API server looks for virt-controller.
func answerReviews(ctx context.Context) (*reviews, error) {
	pair, err := tls.X509KeyPair(world.serving.Data[corev1.TLSCertKey], world.serving.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, err
	}
	l, err := listenInCluster()
	if err != nil {
		return nil, err
	}
	r := &reviews{to: map[string]place{}}
	own := rest.AnonymousClientConfig(world.config)
	own.BearerToken, own.QPS = world.token.last, -1
	if r.second.Kube, r.second.VMIs, err = clients(own); err != nil {
		return nil, err
	}
	// The host of the sweep is busy, and no eviction is to be allowed for that.
	if err := manifests.Slow(ctx, world.kube, func(name string) bool { return strings.HasPrefix(name, "evictions.") }); err != nil {
		return nil, err
	}
	s := &http.Server{Handler: r, ErrorLog: log.New(io.Discard, "", 0)}
	go func() {
		_ = s.Serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS13}))
	}()
	context.AfterFunc(ctx, func() { _ = s.Close() })
	all := world.kube.DiscoveryV1().EndpointSlices(home)
	_ = all.Delete(ctx, "virt-controller", metav1.DeleteOptions{}) // of the run before
	_, err = all.Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "virt-controller", Labels: map[string]string{discoveryv1.LabelServiceName: "virt-controller"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{plan.ControlPlane.Addr().String()}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new("webhooks"), Port: new(int32(l.Addr().(*net.TCPAddr).Port))}},
	}, metav1.CreateOptions{})
	return r, err
}

// listenInCluster listens where the API server is, which has a network namespace of its own.
func listenInCluster() (net.Listener, error) {
	pid, err := world.cluster.Node("cp").PID()
	if err != nil {
		return nil, err
	}
	var l net.Listener
	done := make(chan error)
	go func() {
		// The thread stays in the namespace, and ends with this function.
		runtime.LockOSThread()
		f, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
		if err == nil {
			err = errors.Join(unix.Setns(int(f.Fd()), unix.CLONE_NEWNET), f.Close())
		}
		if err == nil {
			l, err = net.Listen("tcp", net.JoinHostPort(plan.ControlPlane.Addr().String(), "0"))
		}
		done <- err
	}()
	return l, <-done
}
