package stream

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/carry"
	"github.com/podvisor/podvisor/internal/ops"
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
	config ServerConfig
	// busy are the streams and calls.
	busy sync.WaitGroup

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
	return &Server{config: c, open: map[types.UID]int{}}
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
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h := &http.Server{
		Handler:           s.handler(ctx),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      s.config.CallTimeout + 10*time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    mostHeader,
		ConnState:         ops.Track,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(s.config.Logger.Handler(), slog.LevelDebug),
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if h.Shutdown(grace) != nil {
			_ = h.Close() // what is still open has had its second
		}
	}()
	err := h.Serve(tls.NewListener(ops.Gate(l, connsInAll, connsPerSource), s.config.Certificate.server()))
	cancel()
	<-stopped
	s.busy.Wait()
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve streams: %w", err)
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
		switch p, ok := protocol.ParsePath(r.URL.RequestURI()); {
		case ok && p.Target.UID != "" && p.Call != "" && r.Method == http.MethodPost:
			s.call(w, r, p.Target, p.Call)
		case ok && p.Target.UID != "" && p.Stream != "" && r.Method == http.MethodGet:
			s.stream(ctx, w, r, p.Target, p.Stream)
		default:
			s.refuse(w, refusal(protocol.ReasonUnknown, "this virt-handler has no such request: it is of another release"))
		}
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
	s.write(w, status, vmi.Finding{Reason: protocol.ReasonUnavailable, Message: err.Error()})
}

// statuses are the codes of refusals by their reason. Others have 503.
var statuses = map[string]int{
	protocol.ReasonNotFound: http.StatusNotFound, protocol.ReasonUnknown: http.StatusNotFound,
	protocol.ReasonBusy: http.StatusConflict, protocol.ReasonNoAgent: http.StatusConflict,
	protocol.ReasonInvalid: http.StatusUnprocessableEntity, protocol.ReasonMalformed: http.StatusBadRequest,
	protocol.ReasonTooLarge: http.StatusRequestEntityTooLarge,
}

func (s *Server) refuse(w http.ResponseWriter, err error) {
	f := vmi.Finding{Reason: protocol.ReasonUnavailable, Message: err.Error()}
	if r := (*vmi.Refusal)(nil); errors.As(err, &r) {
		f = r.Finding
	}
	status := statuses[f.Reason]
	if status == 0 {
		status = http.StatusServiceUnavailable
	}
	s.write(w, status, f)
}

func (s *Server) write(w http.ResponseWriter, status int, f vmi.Finding) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(f) // the client may be gone
}

// enter takes a place for a stream or call of the VMI, which leave gives back.
func (s *Server) enter(uid types.UID) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[uid] >= s.config.StreamsPerVMI {
		return nil, refusal(protocol.ReasonBusy, "%d streams of the VMI are open: close one of them", s.open[uid])
	}
	if s.all >= s.config.Streams {
		return nil, refusal(protocol.ReasonBusy, "%d streams of VMIs on this node are open: try again when one is closed", s.all)
	}
	s.busy.Add(1)
	s.open[uid]++
	s.all++
	return func() {
		defer s.busy.Done()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if s.open[uid]--; s.open[uid] == 0 {
			delete(s.open, uid)
		}
	}, nil
}

func (s *Server) call(w http.ResponseWriter, r *http.Request, to protocol.Target, call protocol.Call) {
	options, err := io.ReadAll(http.MaxBytesReader(w, r.Body, protocol.MaxOptions))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		s.refuse(w, refusal(protocol.ReasonTooLarge, "the options have more than %d bytes", tooLarge.Limit))
		return
	}
	if err != nil || len(options) > 0 && !json.Valid(options) {
		s.refuse(w, refusal(protocol.ReasonMalformed, "the options are no JSON"))
		return
	}
	leave, err := s.enter(to.UID)
	if err != nil {
		s.refuse(w, err)
		return
	}
	defer leave()
	ctx, cancel := context.WithTimeout(r.Context(), s.config.CallTimeout)
	defer cancel()
	answer, err := s.config.Guests.Call(ctx, to, call, options)
	switch {
	case err != nil:
		s.refuse(w, err)
	case answer == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer) // the client may be gone
	}
}

// stream opens a stream, which is carried until either side or ctx ends. It returns when
// the stream is open: the request takes memory too.
func (s *Server) stream(ctx context.Context, w http.ResponseWriter, r *http.Request, to protocol.Target, stream protocol.Stream) {
	if r.Header.Get("Upgrade") != protocol.StreamUpgrade {
		s.refuse(w, refusal(protocol.ReasonMalformed, "ask for the upgrade %s", protocol.StreamUpgrade))
		return
	}
	leave, err := s.enter(to.UID)
	if err != nil {
		s.refuse(w, err)
		return
	}
	opening, cancel := context.WithTimeout(r.Context(), openTimeout)
	inner, err := s.config.Guests.Stream(opening, to, stream)
	cancel()
	if err != nil {
		leave()
		s.refuse(w, err)
		return
	}
	outer, err := carry.Upgrade(w, protocol.StreamUpgrade)
	if err != nil {
		_ = inner.Close()
		leave()
		s.refuse(w, err) // the client may be gone
		return
	}
	log := s.config.Logger.With("vmi", to.Key(), "stream", stream)
	level := slog.LevelInfo
	if _, _, port := stream.Port(); port { // of which a client opens one for each connection
		level = slog.LevelDebug
	}
	log.Log(ctx, level, "a stream begins")
	go func() {
		defer leave()
		carry.Both(ctx, outer, inner)
		log.Log(context.WithoutCancel(ctx), level, "a stream ended")
	}()
}
