package terminal

import (
	"bytes"
	"io"
	"sync/atomic"
	"time"
)

const (
	// queued is how many lines are kept for a terminal that takes nothing.
	queued = 256
	// lineTime is how long a line is waited for.
	lineTime = 200 * time.Millisecond
)

// lines writes lines without waiting long: usually until a line is written, so that
// none is lost when the process ends, and not at all while the writer is stalled.
type lines struct {
	out     io.Writer
	queue   chan line
	stalled atomic.Bool // a line was not written in time
}

// line is one write, and a channel that is closed when it is done.
type line struct {
	text    []byte
	written chan struct{}
}

// Write implements io.Writer. It never fails.
func (l *lines) Write(b []byte) (int, error) {
	w := line{bytes.Clone(b), make(chan struct{})}
	select {
	case l.queue <- w:
	default:
		return len(b), nil // dropped
	}
	if l.stalled.Load() {
		return len(b), nil
	}
	late := time.NewTimer(lineTime)
	defer late.Stop()
	select {
	case <-w.written:
	case <-late.C:
		l.stalled.Store(true)
	}
	return len(b), nil
}

// run writes for ever.
func (l *lines) run() {
	for w := range l.queue {
		_, _ = l.out.Write(w.text) // a log that cannot be written is no reason to stop
		close(w.written)
		if len(l.queue) == 0 {
			l.stalled.Store(false)
		}
	}
}
