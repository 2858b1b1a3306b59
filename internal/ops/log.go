package ops

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/podvisor/podvisor/vmi/config"
)

// Level is the level of a log. It may be changed at any time.
type Level struct {
	slog.LevelVar
	flag slog.Level
}

// Follow makes the level what the verbosity asks for, or what it was at first if
// that asks for nothing.
func (l *Level) Follow(v config.Verbosity) {
	switch {
	case v == 0:
		l.Set(l.flag)
	case v.Debug():
		l.Set(slog.LevelDebug)
	default:
		l.Set(slog.LevelInfo)
	}
}

// Logger writes a line of JSON for each record of at least this level: debug,
// info, warn or error.
func Logger(w io.Writer, level string) (*slog.Logger, *Level, error) {
	l := &Level{}
	if err := l.flag.UnmarshalText([]byte(level)); err != nil {
		return nil, nil, fmt.Errorf("log level %q: %w", level, err)
	}
	l.Set(l.flag)
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l})), l, nil
}
