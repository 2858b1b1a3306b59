package controller

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"golang.org/x/time/rate"

	"github.com/podvisor/podvisor/handler"
)

// Delays between two tries of a task that fails.
const (
	firstRetry = 20 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// A launcher chooses when a task is done and how often its connection breaks, after
// which the network is bound and the VMI is put again. So many tasks are begun at
// once, and then one in each interval. A VMI from its start to its end takes fewer
// than the first.
const (
	tasksAtOnce  = 20
	taskInterval = 5 * time.Second
)

// task is what of a decision waits for the launcher. It is done by the session's own
// goroutine: a launcher holds nothing that another VMI needs.
type task struct {
	kind taskKind
	do   func(context.Context) error
}

// taskKind is what a task does. One of another kind does not wait for the retry of
// one that failed.
type taskKind string

const (
	taskBind taskKind = "bind the network"
	taskPut  taskKind = "put the VMI"
	taskStop taskKind = "put the stop"
)

// kindOf is the kind of the task that begins with the action. Empty: it waits for no
// launcher.
func kindOf(a handler.Action) taskKind {
	if _, ok := a.(handler.Bind); ok {
		return taskBind
	}
	p, ok := a.(handler.Put)
	switch {
	case !ok:
		return ""
	case p.Stop != nil:
		return taskStop
	}
	return taskPut
}

// turn is whose turn it is. The session's lock guards it.
type turn struct {
	busy  bool  // a task is being done
	done  int   // how many were done
	again bool  // another decision was made meanwhile
	next  *task // a stop, to be put after the task that is being done

	failed taskKind  // what failed last; empty: nothing
	tries  int       // how often it failed
	until  time.Time // when it is tried again
	wake   *time.Timer
	wakes  time.Time // when wake queues the VMI; zero: it does not
	pace   *rate.Limiter
}

// seen is how many tasks were done. It is read before the session is observed.
func (s *session) seen() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn.done
}

// hand hands over a task that was decided when so many were done, and returns at
// once. While another is being done, or was done since, or it is not time for the
// next try, it is dropped: the VMI is queued when that is over, and then decided
// anew. A stop is kept: the session may end before.
func (s *session) hand(seen int, t task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seen != s.turn.done && t.kind != taskStop {
		s.queue()
		return
	}
	if s.turn.busy {
		s.turn.again = true
		if t.kind == taskStop {
			s.turn.next = &t
		}
		return
	}
	if s.turn.failed == t.kind && time.Now().Before(s.turn.until) {
		s.wakeAt(s.turn.until)
		return
	}
	if r := s.turn.pace.Reserve(); r.Delay() > 0 && t.kind != taskStop {
		wait := r.Delay()
		r.Cancel()
		s.retry(t.kind, wait)
		return
	}
	s.begin(t)
}

// begin gives a task to the session's goroutine. The lock is held, and no task is
// being done.
func (s *session) begin(t task) {
	s.turn.busy, s.turn.again = true, false
	s.tasks <- t // has room for one
}

// retry queues the VMI after the delay, before which no task of the kind is taken.
// The lock is held.
func (s *session) retry(kind taskKind, delay time.Duration) {
	s.turn.failed, s.turn.until = kind, time.Now().Add(delay)
	s.wakeAt(s.turn.until)
}

// wakeAt queues the VMI at that time, or before: what is decided then is not taken, and
// asks again. A session has one such timer, however often its launcher has tasks fail. The
// lock is held.
func (s *session) wakeAt(at time.Time) {
	if !s.turn.wakes.IsZero() && !at.Before(s.turn.wakes) {
		return
	}
	if s.turn.wake != nil {
		s.turn.wake.Stop()
	}
	s.turn.wakes = at
	s.turn.wake = time.AfterFunc(time.Until(at), func() {
		s.mu.Lock()
		if s.turn.wakes.Equal(at) { // it was not set anew meanwhile
			s.turn.wakes = time.Time{}
		}
		s.mu.Unlock()
		s.queue()
	})
}

// work does what is handed over, one task at a time, until the session was ended
// and no task is left.
func (s *session) work(ctx context.Context) {
	for {
		select {
		case t := <-s.tasks:
			s.finish(t, s.attempt(ctx, t))
			continue
		case <-ctx.Done():
			return
		case <-s.ended:
		}
		select {
		case t := <-s.tasks:
			s.finish(t, s.attempt(ctx, t))
		default:
			return
		}
	}
}

// attempt does a task.
func (s *session) attempt(ctx context.Context, t task) error {
	return guarded(func() error { return t.do(ctx) })
}

// guarded calls do. A panic is an error with the stack: one VMI that breaks the code does
// not end the work on all others. Every goroutine of a session is guarded.
func guarded(do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return do()
}

// finish notes the end of a task.
func (s *session) finish(t task, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn.busy = false
	s.turn.done++
	again := s.turn.again
	if err == nil {
		s.turn.failed, s.turn.tries = "", 0
	} else {
		s.log.Warn("retry", "action", string(t.kind), "err", err)
		if s.turn.failed != t.kind {
			s.turn.tries = 0
		}
		delay := lastRetry
		if s.turn.tries < 16 {
			delay = min(firstRetry<<s.turn.tries, lastRetry)
		}
		s.turn.tries++
		s.retry(t.kind, delay)
	}
	if next := s.turn.next; next != nil {
		s.turn.next = nil
		s.begin(*next)
		return
	}
	if again {
		s.queue()
	}
}
