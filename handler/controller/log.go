package controller

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// A launcher chooses how often its connection breaks and a task fails, each of which
// is a line in the log. A session has so many at once, and then one in each interval.
const (
	linesAtOnce  = 20
	lineInterval = time.Minute
)

// limitedLog is a logger that drops the lines beyond the limits of a session. The
// next line says how many.
func limitedLog(l *slog.Logger) *slog.Logger {
	return slog.New(&limitedLines{Handler: l.Handler(), limiter: rate.NewLimiter(rate.Every(lineInterval), linesAtOnce), dropped: &atomic.Int64{}})
}

// limitedLines is the handler of a limitedLog.
type limitedLines struct {
	slog.Handler
	limiter *rate.Limiter
	dropped *atomic.Int64
}

// Handle implements slog.Handler.
func (h *limitedLines) Handle(ctx context.Context, r slog.Record) error {
	if !h.limiter.Allow() {
		h.dropped.Add(1)
		return nil
	}
	if n := h.dropped.Swap(0); n > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int64("droppedLines", n))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *limitedLines) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &limitedLines{Handler: h.Handler.WithAttrs(attrs), limiter: h.limiter, dropped: h.dropped}
}

// WithGroup implements slog.Handler.
func (h *limitedLines) WithGroup(name string) slog.Handler {
	return &limitedLines{Handler: h.Handler.WithGroup(name), limiter: h.limiter, dropped: h.dropped}
}
