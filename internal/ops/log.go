package ops

import (
	"fmt"
	"io"
	"log/slog"
)

// Logger writes a line of JSON for each record of at least this level: debug,
// info, warn or error.
func Logger(w io.Writer, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("log level %q: %w", level, err)
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l})), nil
}
