package transport

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

	"github.com/podvisor/podvisor/internal/carry"
	"github.com/podvisor/podvisor/launcher/protocol"
)

// Server is the side of connections that answers calls and streams. The fields are not
// changed after the first use. Errors reach the peer with the reason of a [vmi.Refusal], as
// Invalid if they are a [vmi.ErrInvalid], and as Unavailable otherwise.
type Server struct {
	// Call makes the call of the path. Options are JSON, or empty without; nil is no answer.
	// Required.
	Call func(ctx context.Context, p protocol.Path, options json.RawMessage) (json.RawMessage, error)
	// Enter takes a place for the stream of the path, which leave gives back when the stream has
	// ended. Required.
	Enter func(p protocol.Path) (leave func(), err error)
	// Open opens the inner end of the stream of the path; ctx bounds the opening. Required.
	Open func(ctx context.Context, p protocol.Path) (net.Conn, error)
	// Logger takes a line for each stream that begins or ends. Required.
	Logger *slog.Logger

	busy sync.WaitGroup // calls and streams
}

// Serve serves on l until ctx ends, closes l and returns nil then, when no call and no
// stream is left. The context of the handler ends with it, and earlier than it.
func (s *Server) Serve(ctx context.Context, l net.Listener, h *http.Server, handler func(context.Context) http.Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h.Handler, h.BaseContext = handler(ctx), func(net.Listener) context.Context { return ctx }
	h.ErrorLog = slog.NewLogLogger(s.Logger.Handler(), slog.LevelDebug)
	err := Serve(ctx, l, h, time.Second)
	cancel()
	s.busy.Wait()
	return err
}

// Serve serves on l until ctx ends, closes l and returns nil then. Requests that have begun have
// the time last to be answered.
func Serve(ctx context.Context, l net.Listener, h *http.Server, last time.Duration) error {
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), last)
		defer cancel()
		if h.Shutdown(grace) != nil {
			_ = h.Close() // what is still open has had its time
		}
	})
	err := h.Serve(l)
	if stop() {
		_ = h.Close() // nothing listens any more
	} else {
		<-stopped
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	}
	return nil
}

// Answer answers the request of the path. A stream is carried until either side or ctx
// ends; Answer returns when it is open, since the request takes memory too.
func (s *Server) Answer(ctx context.Context, w http.ResponseWriter, r *http.Request, p protocol.Path) {
	switch {
	case p.Call != "" && r.Method == http.MethodPost:
		s.call(w, r, p)
	case p.Stream != "" && r.Method == http.MethodGet:
		s.stream(ctx, w, r, p)
	default:
		s.Refuse(w, Refusal(protocol.ReasonUnknown, "%s is no method of calls or streams", r.Method))
	}
}

// Refuse answers a request with an error, and logs it.
func (s *Server) Refuse(w http.ResponseWriter, err error) {
	s.Logger.Debug("refused a request", "err", err)
	Refuse(w, err)
}

func (s *Server) call(w http.ResponseWriter, r *http.Request, p protocol.Path) {
	s.busy.Add(1)
	defer s.busy.Done()
	options, err := Body(w, r, int64(p.MaxOptions()))
	if err == nil && len(options) > 0 && !json.Valid(options) {
		err = Refusal(protocol.ReasonMalformed, "the options are no JSON")
	}
	if err != nil {
		s.Refuse(w, err)
		return
	}
	answer, err := s.Call(r.Context(), p, options)
	switch {
	case err != nil:
		s.Refuse(w, err)
	case answer == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer) // the client may be gone
	}
}

// Body is what a request sends, of at most so many bytes. An error is a refusal.
func Body(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, Refusal(protocol.ReasonTooLarge, "the request has more than %d bytes", tooLarge.Limit)
	}
	if err != nil {
		return nil, Refusal(protocol.ReasonMalformed, "read the request: %v", err)
	}
	return b, nil
}

func (s *Server) stream(ctx context.Context, w http.ResponseWriter, r *http.Request, p protocol.Path) {
	if err := Asked(r, protocol.StreamUpgrade); err != nil {
		s.Refuse(w, err)
		return
	}
	leave, err := s.Enter(p)
	if err != nil {
		s.Refuse(w, err)
		return
	}
	s.busy.Add(1)
	end := func() { leave(); s.busy.Done() }
	inner, err := s.Open(r.Context(), p)
	if err != nil {
		end()
		s.Refuse(w, err)
		return
	}
	outer, err := upgrade(w, protocol.StreamUpgrade)
	if err != nil {
		_ = inner.Close()
		end()
		s.Refuse(w, err) // the client may be gone
		return
	}
	log, level := s.Logger.With("stream", p.Stream), slog.LevelInfo
	if p.Target != (protocol.Target{}) {
		log = log.With("vmi", p.Target.Key())
	}
	if _, _, port := p.Stream.Port(); port { // of which a client opens one for each connection
		level = slog.LevelDebug
	}
	log.Log(ctx, level, "a stream begins")
	go func() {
		defer end()
		if p.IsMigration() {
			carry.Bulk(ctx, outer, inner)
		} else {
			carry.Both(ctx, outer, inner)
		}
		log.Log(context.WithoutCancel(ctx), level, "a stream ended")
	}()
}
