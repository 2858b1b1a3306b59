package stream

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/ops"
	"github.com/podvisor/podvisor/internal/review"
	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// Guests are the VMIs of a node. Errors that are a [*vmi.Refusal] reach the caller with
// their reason, others as protocol.ReasonUnavailable.
type Guests interface {
	// Stream opens a stream; ctx bounds the opening.
	Stream(ctx context.Context, to protocol.Target, stream protocol.Stream) (net.Conn, error)
	// Call makes a call; options and answer are JSON or nil.
	Call(ctx context.Context, to protocol.Target, call protocol.Call, options json.RawMessage) (json.RawMessage, error)
}

// ServerConfig is what a [Server] needs.
type ServerConfig struct {
	// Guests are the VMIs of the node. Required.
	Guests Guests
	// Admit returns nil if the bearer of the token may open streams: [Reviews.Admit].
	// The source is the address that the request comes from. Required.
	Admit func(ctx context.Context, token, source string) error
	// Peer returns whether the handler whose certificate has this hash may make the request
	// about a migration: it was accepted for this migration, VMI and pod. Nil: none was.
	Peer func(p protocol.Path, certificate string) bool
	// Certificate is that of the server. Required.
	Certificate Certificate
	// StreamsPerVMI and Streams are how many streams of one VMI, and in all, may be
	// open. 0: 32 and 1024. Those of migrations do not count.
	StreamsPerVMI, Streams int
	// CallTimeout is how long a call may take. 0: a minute.
	CallTimeout time.Duration
	// Logger takes a line for each stream that begins or ends. Nil: nothing is logged.
	Logger *slog.Logger
}

// Connections that have not become a stream: so many in all, and so many of one source.
// Every pod in the cluster can connect.
const (
	connsInAll     = 512
	connsPerSource = 256
)

// A migration has places of its own beside those of its VMI: so many streams, and so many
// calls.
const (
	streamsPerMigration = 16
	callsPerMigration   = 8
)

// Server serves the streams and calls of the VMIs of one node.
type Server struct {
	config  ServerConfig
	serving transport.Server

	mu   sync.Mutex
	open map[place]int // streams and calls
	all  int           // but for those of migrations
}

// place is what has a number of places: the streams and calls of a VMI, or the streams or the calls of a
// migration.
type place struct {
	uid  types.UID // of the VMI, or of the migration in a request of a handler
	kind placeKind
}

type placeKind int

const (
	ofInstance placeKind = iota
	callsOfMigration
	streamsOfMigration
)

func placeOf(p protocol.Path) place {
	uid := p.Target.UID
	if p.Migration != "" {
		uid = p.Migration
	}
	switch {
	case p.IsMigration() && p.Call != "":
		return place{uid, callsOfMigration}
	case p.IsMigration():
		return place{uid, streamsOfMigration}
	}
	return place{uid, ofInstance}
}

// NewServer makes a Server.
func NewServer(c ServerConfig) *Server {
	if c.StreamsPerVMI == 0 {
		c.StreamsPerVMI = 32
	}
	if c.Streams == 0 {
		c.Streams = 1024
	}
	if c.CallTimeout == 0 {
		c.CallTimeout = time.Minute
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{config: c, open: map[place]int{}}
	s.serving.Call, s.serving.Enter, s.serving.Open, s.serving.Logger = s.call, s.enter, s.stream, c.Logger
	return s
}

// ListenAndServe listens on the address and serves until ctx ends.
func (s *Server) ListenAndServe(ctx context.Context, addr string) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", addr, err)
	}
	return s.Serve(ctx, l)
}

// Serve serves on l until ctx ends, closes l and returns nil then. Streams end with it.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	h := &http.Server{
		ReadTimeout:    mostToRead,
		WriteTimeout:   s.config.CallTimeout + 10*time.Second,
		IdleTimeout:    time.Minute,
		MaxHeaderBytes: mostHeader,
		ConnState:      ops.Track,
	}
	config := s.config.Certificate.server()
	if s.config.Peer != nil {
		config.ClientAuth = tls.RequestClientCert // who has one proves that it has its key
	}
	l = tls.NewListener(ops.Gate(l, connsInAll, connsPerSource), config)
	if err := s.serving.Serve(ctx, l, h, s.handler); err != nil {
		return fmt.Errorf("streams: %w", err)
	}
	return nil
}

// handler answers requests. Streams end with ctx.
func (s *Server) handler(ctx context.Context) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		source := review.Source(r.RemoteAddr).String()
		p, ok := protocol.ParsePath(r.URL.RequestURI())
		if err := s.admit(r, p, source); err != nil {
			s.deny(w, source, err)
			return
		}
		if !ok || p.Target.UID == "" || p.Migration == "" && p.IsMigration() && !slices.Contains(controllerCalls, p.Call) {
			s.serving.Refuse(w, transport.Refusal(protocol.ReasonUnknown, "this virt-handler has no such request: it is of another release"))
			return
		}
		s.serving.Answer(ctx, w, r, p)
	})
}

var (
	// errNoToken is the error of a request without one token.
	errNoToken = errors.New("the request has no token")
	// errNoPeer is the error of a request of a handler that was not accepted for it.
	errNoPeer = errors.New("the request is of no handler that was accepted for the migration")
)

// admit returns nil if the caller may make the request: virt-controller by its token, another
// handler by its certificate.
func (s *Server) admit(r *http.Request, p protocol.Path, source string) error {
	if p.Migration != "" {
		if !s.admitsPeer(r, p) {
			return errNoPeer
		}
		return nil
	}
	token, has := review.Bearer(r)
	if !has {
		return errNoToken
	}
	return s.config.Admit(r.Context(), token, source)
}

// deny answers a caller that is not admitted, and says nothing about VMIs.
func (s *Server) deny(w http.ResponseWriter, source string, err error) {
	s.config.Logger.Debug("denied a request", "source", source, "err", err)
	status := http.StatusUnauthorized
	if errors.Is(err, ErrNotReviewed) {
		status = http.StatusServiceUnavailable
	}
	w.Header().Set("Connection", "close")
	transport.WriteFinding(w, status, vmi.Finding{Reason: protocol.ReasonUnavailable, Message: err.Error()})
}

// enter takes a place for a stream or call of the VMI, which leave gives back.
func (s *Server) enter(p protocol.Path) (leave func(), err error) {
	of, most := placeOf(p), s.config.StreamsPerVMI
	switch of.kind {
	case callsOfMigration:
		most = callsPerMigration
	case streamsOfMigration:
		most = streamsPerMigration
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[of] >= most {
		return nil, transport.Refusal(protocol.ReasonBusy, "%d streams of the VMI are open: close one of them", s.open[of])
	}
	if of.kind == ofInstance {
		if s.all >= s.config.Streams {
			return nil, transport.Refusal(protocol.ReasonBusy, "%d streams of VMIs on this node are open: try again when one is closed", s.all)
		}
		s.all++
	}
	s.open[of]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if of.kind == ofInstance {
			s.all--
		}
		if s.open[of]--; s.open[of] == 0 {
			delete(s.open, of)
		}
	}, nil
}

// call makes a call to a guest.
func (s *Server) call(ctx context.Context, p protocol.Path, options json.RawMessage) (json.RawMessage, error) {
	leave, err := s.enter(p)
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, s.config.CallTimeout)
	defer cancel()
	return s.config.Guests.Call(ctx, p.Target, p.Call, options)
}

// stream opens the stream of a guest.
func (s *Server) stream(ctx context.Context, p protocol.Path) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	return s.config.Guests.Stream(ctx, p.Target, p.Stream)
}
