package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
)

// maxBody is the largest Desired that is read. An object of the API server is
// at most 1.5 MiB.
const maxBody = 4 << 20

// ServerConfig is what a [Server] needs.
type ServerConfig struct {
	// Namespace, Name and UID are those of the launcher's machine. A Desired of
	// any other machine is refused. Required.
	Namespace, Name string
	UID             types.UID

	// Put takes what the handler wants. It must not block for long; what it
	// returns is told to the handler, and is terminal if it wraps
	// [vmi.ErrInvalid]. Required.
	Put func(Desired) error

	// NetworkNamespace is the file of the namespace that is handed to the
	// handler. Default: that of the process.
	NetworkNamespace string

	// Logger takes what the server says. Nil: nothing is logged.
	Logger *slog.Logger
}

// Server serves one launcher's state. Its methods may be called at any time
// and from any goroutine.
type Server struct {
	config ServerConfig

	mu       sync.Mutex
	state    State
	changed  chan struct{} // closed when state changes
	watchers int
	told     bool          // somebody was sent the Ended state
	drained  chan struct{} // closed when told and no watcher is left
}

// NewServer returns a server whose state is Waiting.
func NewServer(config ServerConfig) *Server {
	if config.NetworkNamespace == "" {
		config.NetworkNamespace = "/proc/self/ns/net"
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	return &Server{
		config:  config,
		state:   State{Phase: Waiting},
		changed: make(chan struct{}),
		drained: make(chan struct{}),
	}
}

// Publish makes s the state that clients see. Watchers that are slow miss
// states in between, never the last one.
func (s *Server) Publish(state State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
	close(s.changed)
	s.changed = make(chan struct{})
}

// Drained is closed when a client has been sent the Ended state and every
// watcher has.
func (s *Server) Drained() <-chan struct{} { return s.drained }

// Serve answers on l until ctx ends, closes l and returns nil then. Watches end
// with it.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h := &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(s.config.Logger.Handler(), slog.LevelDebug),
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if err := h.Shutdown(grace); err != nil {
			_ = h.Close() // what is still open has had its second
		}
	}()
	err := h.Serve(l)
	cancel()
	<-stopped
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve control socket: %w", err)
	}
	return nil
}

func (s *Server) handler() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET "+statePath, s.getState)
	m.HandleFunc("GET "+watchPath, s.watch)
	m.HandleFunc("PUT "+desiredPath, s.putDesired)
	m.HandleFunc("GET "+namespacePath, s.getNamespace)
	return m
}

func (s *Server) getState(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	state := s.state
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(state); err == nil && state.Phase == Ended {
		s.left(0, true)
	}
}

// watch sends the state now and whenever it changes, until the machine or the
// client ends.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.watchers++
	s.mu.Unlock()
	told := false
	defer func() { s.left(1, told) }()

	w.Header().Set("Content-Type", "application/jsonl")
	out, e := http.NewResponseController(w), json.NewEncoder(w)
	for {
		s.mu.Lock()
		state, changed := s.state, s.changed
		s.mu.Unlock()
		if e.Encode(state) != nil || out.Flush() != nil {
			return
		}
		if state.Phase == Ended {
			told = true
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// left notes that n watchers are gone, and whether the one that calls was sent
// the Ended state.
func (s *Server) left(n int, told bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers -= n
	s.told = s.told || told
	if !s.told || s.watchers > 0 {
		return
	}
	select {
	case <-s.drained:
	default:
		close(s.drained)
	}
}

func (s *Server) putDesired(w http.ResponseWriter, r *http.Request) {
	var d Desired
	// A field that this launcher does not know is of a newer handler and is
	// passed over.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		err = json.Unmarshal(body, &d)
	}
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		s.refuse(w, http.StatusRequestEntityTooLarge, ReasonTooLarge, err)
		return
	}
	if err != nil {
		s.refuse(w, http.StatusBadRequest, ReasonMalformed, err)
		return
	}
	if err := s.own(d.Instance); err != nil {
		s.refuse(w, http.StatusConflict, ReasonOtherMachine, err)
		return
	}
	switch err := s.config.Put(d); {
	case errors.Is(err, vmi.ErrInvalid):
		s.refuse(w, http.StatusUnprocessableEntity, ReasonInvalid, err)
	case err != nil:
		s.refuse(w, http.StatusServiceUnavailable, ReasonUnavailable, err)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// own says why v is not the launcher's machine.
func (s *Server) own(v *vmi.VirtualMachineInstance) error {
	if v == nil {
		return errors.New("the desired state names no instance")
	}
	c := s.config
	if v.Namespace != c.Namespace || v.Name != c.Name || v.UID != c.UID {
		return fmt.Errorf("this launcher runs %s/%s with UID %s, not %s/%s with UID %s",
			c.Namespace, c.Name, c.UID, v.Namespace, v.Name, v.UID)
	}
	return nil
}

func (s *Server) refuse(w http.ResponseWriter, status int, reason string, err error) {
	s.config.Logger.Debug("refused a request", "reason", reason, "err", err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(Problem{Reason: reason, Message: err.Error()}) // the client may be gone
}
