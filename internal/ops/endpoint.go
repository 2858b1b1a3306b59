package ops

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"net/http"
	"path"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/podvisor/podvisor/internal/transport"
)

// Endpoint is the health and metrics endpoint of a component.
type Endpoint struct {
	// Addr is where it listens, for example ":8443". Required.
	Addr string
	// Metrics are served at /metrics, to users whom Guard lets in. Nil: there are none.
	Metrics prometheus.Gatherer
	// Guard answers instead of a handler to users without the right to read metrics. Required with
	// Metrics: nil lets no one in.
	Guard func(http.Handler) http.Handler
	// Healthy says why the component must be started again, if it must. Nil: it
	// is healthy as long as it answers.
	Healthy func() error
	// Ready says why the component does not work yet, if it does not: starting
	// it again would not help. Nil: it is ready when it is healthy.
	Ready func() error
	// Facts are served with the health, by name. Nil: none.
	Facts func() map[string]string
	// Handlers answer at other paths. Nil: there are none.
	Handlers map[string]http.Handler
	// Certificate is the certificate to serve with, or nil while there is none:
	// then, and if the function is nil, it is one that is made at start.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Logger takes what goes wrong in the server. Nil: nothing is logged.
	Logger *slog.Logger
}

// metricsPath is where metrics are served, and what a role names that lets read them.
const metricsPath = "/metrics"

// Registry is a registry that has the metrics of the process and of the Go
// runtime already.
func Registry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// Serve answers at the endpoint until ctx ends. Without a certificate from
// elsewhere it makes one at each start, signed by itself: the kubelet and the
// collector of metrics do not verify it.
func Serve(ctx context.Context, e Endpoint) error {
	cert, err := selfSigned(time.Now())
	if err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", e.Addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", e.Addr, err)
	}
	return serve(ctx, tls.NewListener(newGate(l, connsInAll, connsPerSource), &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}, GetCertificate: e.Certificate,
		// Handlers verify them, each by its own authority.
		ClientAuth: tls.RequestClientCert,
	}), e)
}

func serve(ctx context.Context, l net.Listener, e Endpoint) error {
	if e.Logger == nil {
		e.Logger = slog.New(slog.DiscardHandler)
	}
	s := &http.Server{
		Handler:        e.Handler(),
		ReadTimeout:    mostToRead,
		WriteTimeout:   mostToWrite,
		IdleTimeout:    mostIdle,
		MaxHeaderBytes: mostHeader,
		ConnState:      Track,
		ErrorLog:       slog.NewLogLogger(e.Logger.Handler(), slog.LevelDebug),
	}
	return transport.Serve(ctx, l, s, lastAnswers)
}

// Every pod in the cluster can connect. How long a handshake, and then a request, may take to
// be read, and how long to be answered: an API server that is busy sends the head of a request
// seconds after the handshake. Connections without one are closed earlier where they hold the
// places of others. And how long a connection may wait for the next request: longer than the
// API server does, so that the API server closes it.
const (
	mostToRead  = 30 * time.Second
	mostToWrite = 30 * time.Second
	mostIdle    = 2 * time.Minute
)

// mostHeader is the longest head of a request, in bytes. What the API server says of
// a user and a request is in it.
const mostHeader = 64 << 10

// lastAnswers is how long requests that have begun may take when the endpoint
// ends.
const lastAnswers = 2 * time.Second

// Handler answers /healthz, /readyz and /metrics. Doubled slashes do not matter.
func (e Endpoint) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", e.answer(e.Healthy))
	mux.HandleFunc("/readyz", e.answer(e.Healthy, e.Ready))
	if e.Metrics != nil && e.Guard != nil {
		mux.Handle(metricsPath, e.Guard(promhttp.HandlerFor(e.Metrics, promhttp.HandlerOpts{})))
	}
	for at, h := range e.Handlers {
		mux.Handle(at, h)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = path.Clean(r.URL.Path)
		mux.ServeHTTP(w, r)
	})
}

// answer is 200 with the facts as JSON, or 500 with the reason too.
func (e Endpoint) answer(checks ...func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		facts := map[string]string{}
		if e.Facts != nil {
			maps.Copy(facts, e.Facts())
		}
		w.Header().Set("Content-Type", "application/json")
		if err := All(checks...)(); err != nil {
			facts["error"] = err.Error()
			w.WriteHeader(http.StatusInternalServerError)
		}
		_ = json.NewEncoder(w).Encode(facts)
	}
}

// selfSigned makes a certificate that is valid for ten years.
func selfSigned(now time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: "podvisor"},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.AddDate(10, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// Handlers are the handlers of all of them, by their paths.
func Handlers(all ...map[string]http.Handler) map[string]http.Handler {
	out := map[string]http.Handler{}
	for _, some := range all {
		maps.Copy(out, some)
	}
	return out
}
