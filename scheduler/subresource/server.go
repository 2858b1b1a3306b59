package subresource

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/scheduler/guest"
	"github.com/podvisor/podvisor/scheduler/subresource/frontproxy"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/config"
)

// Config is the configuration of a Server.
type Config struct {
	// Client reads and patches VMs and VMIs. Required.
	Client *client.Client
	// Kube reads nodes, watches the trust in the aggregator and creates
	// SubjectAccessReviews. Required.
	Kube kubernetes.Interface
	// Guests reach the launchers. Without nodes, what needs them is answered with 503.
	Guests guest.Guests
	// Settings returns the configuration of the cluster that is in force: its defaults
	// complete a VM that is expanded, and its taint is that of nodes that are drained. Nil:
	// the default configuration.
	Settings func() config.Config
	// ConfigVersion is the resourceVersion of the KubeVirt object in force, which healthz
	// answers with. Nil: there is none.
	ConfigVersion func() string
	// Version is answered to who asks for the version. Without a GitVersion: what the
	// program was built from.
	Version version.Info
	// Requests is how many requests of verbs are answered at once. 0: 128. Those of one
	// namespace are no more than are free. A stream counts until it is open.
	Requests int
	// Streams is how many streams are open in all, and StreamsPerVMI of one VMI. 0:
	// 1,000 and 20. The VMIs of one namespace have no more than are free.
	Streams, StreamsPerVMI int
	// Ping is the time between two pings of a stream, and Idle how long its client may
	// answer none, or take nothing of what is sent. 0: 10 s and 60 s.
	Ping, Idle time.Duration
	// Logger logs refused callers and failures. Nil: nothing is logged.
	Logger *slog.Logger
}

func (c Config) complete() Config {
	if c.Version.GitVersion == "" {
		c.Version = own()
	}
	c.Requests = cmp.Or(c.Requests, 128)
	c.Streams = cmp.Or(c.Streams, 1000)
	c.StreamsPerVMI = cmp.Or(c.StreamsPerVMI, 20)
	if c.Settings == nil {
		c.Settings = func() config.Config { return config.Config{} }
	}
	if c.ConfigVersion == nil {
		c.ConfigVersion = func() string { return "" }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Server answers the API. It is made by [New] and run once.
type Server struct {
	Config
	once     reconcile.Once
	proxy    *frontproxy.Proxy
	reviewer frontproxy.Authorizer
	requests *places
	streams  *places
	// large has room for what one large body takes while it is decoded.
	large  chan struct{}
	checks checks

	// ended is closed when the streams are to end.
	ended chan struct{}
}

// New makes a Server.
func New(c Config) (*Server, error) {
	if err := reconcile.Missing("subresource.Config", map[string]bool{"Client": c.Client == nil, "Kube": c.Kube == nil}); err != nil {
		return nil, err
	}
	c = c.complete()
	p, err := frontproxy.New(c.Kube, c.Logger)
	return &Server{
		Config: c, proxy: p, reviewer: frontproxy.Authorizer{Kube: c.Kube}, requests: newPlaces("requests", c.Requests, c.Requests),
		large: make(chan struct{}, 1), streams: newPlaces("open streams", c.Streams, c.StreamsPerVMI), ended: make(chan struct{}),
	}, err
}

// Run watches whom to trust until ctx ends. Then it ends the streams, each with a close
// frame, and returns when they are closed. It is called once: a second call is an error.
func (s *Server) Run(ctx context.Context) error {
	if err := s.once.Begin("subresource API"); err != nil {
		return err
	}
	err := s.proxy.Run(reconcile.WithClientLog(ctx, s.Logger))
	s.streams.end()
	close(s.ended)
	s.streams.all.Wait()
	return err
}

// Ready says why users cannot be authenticated, if they cannot.
func (s *Server) Ready() error { return s.proxy.Ready() }

// Handlers are the handlers by path, for a [http.ServeMux].
func (s *Server) Handlers() map[string]http.Handler {
	all := map[string]http.Handler{"/apis": s, "/apis/": s, "/{$}": s, "/openapi/": s}
	return all
}

// ServeHTTP answers one request. What describes the API is answered always: without it
// the API server takes the API for one that is gone.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if answer, ok := s.discovery(r); ok {
		code := http.StatusOK
		if h, ok := answer.(health); ok && h.APIServer.Connectivity != connected {
			code = http.StatusInternalServerError
		}
		write(w, code, answer)
		return
	}
	s.verb(w, r)
}
