package reconcile

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
)

// WithClientLog has client-go log to the logger in what runs with the context. With nil, or
// a logger that discards everything, client-go logs to klog as before.
func WithClientLog(ctx context.Context, l *slog.Logger) context.Context {
	if l == nil || l.Handler() == slog.DiscardHandler {
		return ctx
	}
	return logr.NewContextWithSlogLogger(ctx, l)
}
