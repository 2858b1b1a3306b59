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
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/ops"
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
	// Certificate is that of the server. Required.
	Certificate Certificate
	// StreamsPerVMI and Streams are how many streams of one VMI, and in all, may be
	// open. 0: 32 and 1024.
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

// Server serves the streams and calls of the VMIs of one node.
type Server struct {
	config  ServerConfig
	serving transport.Server

	mu   sync.Mutex
	open map[types.UID]int // streams and calls by VMI
	all  int
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
	s := &Server{config: c, open: map[types.UID]int{}}
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
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      s.config.CallTimeout + 10*time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    mostHeader,
		ConnState:         ops.Track,
	}
	l = tls.NewListener(ops.Gate(l, connsInAll, connsPerSource), s.config.Certificate.server())
	if err := s.serving.Serve(ctx, l, h, s.handler); err != nil {
		return fmt.Errorf("streams: %w", err)
	}
	return nil
}

// handler answers requests. Streams end with ctx.
func (s *Server) handler(ctx context.Context) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, has := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		if !has || len(r.Header.Values("Authorization")) != 1 {
			s.deny(w, host, errNoToken)
			return
		}
		if err := s.config.Admit(r.Context(), token, host); err != nil {
			s.deny(w, host, err)
			return
		}
		p, ok := protocol.ParsePath(r.URL.RequestURI())
		if !ok || p.Target.UID == "" {
			s.serving.Refuse(w, transport.Refusal(protocol.ReasonUnknown, "this virt-handler has no such request: it is of another release"))
			return
		}
		s.serving.Answer(ctx, w, r, p)
	})
}

// errNoToken is the error of a request without one token.
var errNoToken = errors.New("the request has no token")

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
	uid := p.Target.UID
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[uid] >= s.config.StreamsPerVMI {
		return nil, transport.Refusal(protocol.ReasonBusy, "%d streams of the VMI are open: close one of them", s.open[uid])
	}
	if s.all >= s.config.Streams {
		return nil, transport.Refusal(protocol.ReasonBusy, "%d streams of VMIs on this node are open: try again when one is closed", s.all)
	}
	s.open[uid]++
	s.all++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if s.open[uid]--; s.open[uid] == 0 {
			delete(s.open, uid)
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
