package control

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// maxBody is the largest Desired that is read. An object of the API server is
// at most 1.5 MiB.
const maxBody = 4 << 20

// ServerConfig is what a [Server] needs.
type ServerConfig struct {
	// Namespace, Name and UID are those of the launcher's VMI. A Desired of any
	// other VMI is refused. Required.
	Namespace, Name string
	UID             types.UID

	// Put makes a Desired the one in force. It must not block for long. Its error
	// is sent to the handler and is terminal if it wraps [vmi.ErrInvalid]; then the
	// Desired that was in force before stays so. It is called for one Desired at a
	// time. Required.
	Put func(protocol.Desired) error

	// Calls are what the launcher does for each call that it knows. They return
	// when it is done, and are safe to repeat. An error is sent to the handler and
	// is terminal if it wraps [vmi.ErrInvalid]. Nil: none is known.
	Calls map[protocol.Call]func(context.Context) error

	// Questions are the calls that have options or an answer. They are given the
	// options as JSON, which is empty without, and return what is encoded as the
	// answer; nil: there is none. Errors are as for Calls. Nil: none is known.
	Questions map[protocol.Call]func(ctx context.Context, options []byte) (any, error)

	// Streams open the inner end of each stream that the launcher knows, besides
	// [protocol.StreamNetworkNamespace], which every server has. Nil: none.
	Streams map[protocol.Stream]func(context.Context) (net.Conn, error)

	// Port opens the inner end of the stream of a port of the guest, by a network that is tcp
	// or udp: [protocol.PortStream]. Nil: ports are not known.
	Port func(ctx context.Context, network string, port uint16) (net.Conn, error)

	// Stats are what is counted of the domain now. An error is sent to the handler as for
	// Calls. Nil: nothing is counted.
	Stats func(context.Context) (protocol.Stats, error)

	// NetworkNamespace is the file of the namespace that is sent to the handler.
	// Default: that of the process.
	NetworkNamespace string

	// Logger logs what the server does. Nil: nothing is logged.
	Logger *slog.Logger
}

// Server serves one launcher's state. Its methods may be called at any time
// and from any goroutine.
type Server struct {
	config  ServerConfig
	serving transport.Server
	// Each has one element for each stream that is open: those of migrations have places of
	// their own.
	places, moving chan struct{}

	putting    sync.Mutex
	generation int64 // of the Desired in force; guarded by putting

	mu       sync.Mutex
	state    protocol.State
	changed  chan struct{} // closed when state changes
	watchers int
	sent     bool          // a client was sent the Ended state
	drained  chan struct{} // closed when sent and no watcher is left
}

// NewServer returns a server whose state is Waiting.
func NewServer(config ServerConfig) *Server {
	if config.NetworkNamespace == "" {
		config.NetworkNamespace = "/proc/self/ns/net"
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		config:  config,
		state:   protocol.State{Phase: protocol.Waiting},
		changed: make(chan struct{}),
		drained: make(chan struct{}),
		places:  make(chan struct{}, mostStreams),
		moving:  make(chan struct{}, mostMoving),
	}
	s.serving.Call, s.serving.Enter, s.serving.Open, s.serving.Logger = s.call, s.enter, s.open, config.Logger
	return s
}

// Publish makes state the one that clients see. Watchers that are slow miss
// states in between, never the last one.
func (s *Server) Publish(state protocol.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
	close(s.changed)
	s.changed = make(chan struct{})
}

// Drained is closed when a client has been sent the Ended state and every
// watcher has.
func (s *Server) Drained() <-chan struct{} { return s.drained }

// Serve answers on l until ctx ends, closes l and returns nil then. Watches and
// streams end with it.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if err := s.serving.Serve(ctx, l, &http.Server{ReadHeaderTimeout: 30 * time.Second}, s.handler); err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	return nil
}

// handler answers requests. Streams end with ctx.
func (s *Server) handler(ctx context.Context) http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET "+statePath, s.getState)
	m.HandleFunc("GET "+watchPath, s.watch)
	m.HandleFunc("PUT "+desiredPath, s.putDesired)
	m.HandleFunc("GET "+statsPath, s.getStats)
	m.HandleFunc("PUT "+targetPath, s.putDesired)
	m.HandleFunc("GET "+olderNamespacePath, s.getOlderNamespace)
	m.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		switch p, ok := protocol.ParsePath(r.URL.RequestURI()); {
		case !ok || p.Target != protocol.Target{}:
			http.NotFound(w, r)
		case p.Stream == protocol.StreamNetworkNamespace && r.Method == http.MethodGet:
			s.sendNamespace(w, r, protocol.StreamUpgrade)
		default:
			s.serving.Answer(ctx, w, r, p)
		}
	})
	return m
}

func (s *Server) getState(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	state := s.state
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(state); err == nil && state.Phase == protocol.Ended {
		s.left(0, true)
	}
}

func (s *Server) getStats(w http.ResponseWriter, r *http.Request) {
	if s.config.Stats == nil {
		s.serving.Refuse(w, transport.Refusal(protocol.ReasonUnknown, "this launcher counts nothing"))
		return
	}
	stats, err := s.config.Stats(r.Context())
	if err != nil {
		s.serving.Refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(stats) // the handler may be gone
}

// watch sends the state now and whenever it changes, until the domain or the
// client ends.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.watchers++
	s.mu.Unlock()
	sent := false
	defer func() { s.left(1, sent) }()

	w.Header().Set("Content-Type", "application/jsonl")
	out, e := http.NewResponseController(w), json.NewEncoder(w)
	for {
		s.mu.Lock()
		state, changed := s.state, s.changed
		s.mu.Unlock()
		if e.Encode(state) != nil || out.Flush() != nil {
			return
		}
		if state.Phase == protocol.Ended {
			sent = true
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
func (s *Server) left(n int, sent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers -= n
	s.sent = s.sent || sent
	if !s.sent || s.watchers > 0 {
		return
	}
	select {
	case <-s.drained:
	default:
		close(s.drained)
	}
}

func (s *Server) putDesired(w http.ResponseWriter, r *http.Request) {
	if err := s.put(w, r); err != nil {
		s.serving.Refuse(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// put makes the Desired of a request the one in force.
func (s *Server) put(w http.ResponseWriter, r *http.Request) error {
	body, err := transport.Body(w, r, maxBody)
	if err != nil {
		return err
	}
	var d protocol.Desired
	// A field that this launcher does not know is of a newer handler and is ignored.
	if err := json.Unmarshal(body, &d); err != nil {
		return transport.Refusal(protocol.ReasonMalformed, "%v", err)
	}
	if err := s.own(d.Instance); err != nil {
		return err
	}
	s.putting.Lock()
	defer s.putting.Unlock()
	if d.Generation != 0 && d.Generation < s.generation {
		return transport.Refusal(protocol.ReasonStale, "generation %d is older than generation %d, which is in force", d.Generation, s.generation)
	}
	if err := s.config.Put(d); err != nil {
		return err
	}
	s.generation = d.Generation
	return nil
}

// call makes a call and returns when it is done.
func (s *Server) call(ctx context.Context, p protocol.Path, options json.RawMessage) (json.RawMessage, error) {
	if do := s.config.Calls[p.Call]; do != nil {
		return nil, do(ctx)
	}
	ask := s.config.Questions[p.Call]
	if ask == nil {
		return nil, transport.Refusal(protocol.ReasonUnknown, "this launcher has no call %q", p.Call)
	}
	answer, err := ask(ctx, options)
	if err != nil || answer == nil {
		return nil, err
	}
	body, err := json.Marshal(answer)
	if most := p.MaxAnswer(); err == nil && len(body) > most {
		err = fmt.Errorf("the answer to call %s has %d bytes, and at most %d are sent", p.Call, len(body), most)
	}
	return body, err
}

// own is the refusal of a Desired of a VMI that is not the launcher's.
func (s *Server) own(v *vmi.VirtualMachineInstance) error {
	if v == nil {
		return transport.Refusal(protocol.ReasonOtherInstance, "the desired state names no instance")
	}
	c := s.config
	if v.Namespace != c.Namespace || v.Name != c.Name || v.UID != c.UID {
		return transport.Refusal(protocol.ReasonOtherInstance, "this launcher runs %s/%s with UID %s, not %s/%s with UID %s",
			c.Namespace, c.Name, c.UID, v.Namespace, v.Name, v.UID)
	}
	return nil
}
