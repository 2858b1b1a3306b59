package ops

import (
	"context"
	"log/slog"
	"sync"
)

// WithoutRepeats returns a logger that drops a line at debug level that says the same
// as the last one with its message: a library that looks at a lease every two seconds
// and finds nothing new logs that once. Lines at other levels are kept.
func WithoutRepeats(l *slog.Logger) *slog.Logger {
	return slog.New(&repeats{Handler: l.Handler(), said: &said{last: map[string]string{}}})
}

// remembered is how many messages are remembered at most. They are constants of
// libraries, of which there are fewer.
const remembered = 1024

// said are the attributes of the last line with each message.
type said struct {
	mu   sync.Mutex
	last map[string]string
}

// repeats is a handler for a logger without repeats.
type repeats struct {
	slog.Handler
	said *said
	// of are the attributes and groups that the logger has.
	of string
}

// Handle implements slog.Handler.
func (h *repeats) Handle(ctx context.Context, r slog.Record) error {
	if r.Level <= slog.LevelDebug && h.said.again(r.Message, h.of+attributes(r)) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *repeats) WithAttrs(attrs []slog.Attr) slog.Handler {
	of := h.of
	for _, a := range attrs {
		of += a.String() + "\n"
	}
	return &repeats{Handler: h.Handler.WithAttrs(attrs), said: h.said, of: of}
}

// WithGroup implements slog.Handler.
func (h *repeats) WithGroup(name string) slog.Handler {
	return &repeats{Handler: h.Handler.WithGroup(name), said: h.said, of: h.of + name + "\n"}
}

func attributes(r slog.Record) string {
	all := ""
	r.Attrs(func(a slog.Attr) bool {
		all += a.String() + "\n"
		return true
	})
	return all
}

// again says whether the last line with the message had the same attributes, and
// remembers this one.
func (s *said) again(message, attributes string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, ok := s.last[message]; ok && last == attributes {
		return true
	}
	if len(s.last) >= remembered {
		clear(s.last)
	}
	s.last[message] = attributes
	return false
}
