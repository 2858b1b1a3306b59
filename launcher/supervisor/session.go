package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
)

// session keeps three connections to the daemon, one for calls, one for events and one
// that only asks whether the daemon answers, and makes them anew when they are lost.
type session struct {
	socket string
	logger *slog.Logger
	// up is called when there are new connections, before they are used.
	up func(context.Context, *libvirt.Connection)
	// down is called when they are lost.
	down func()
	// event is called for every event, in order.
	event func(libvirt.Event)
	// late is called when the daemon has not answered at once, with the time since when it was
	// asked, and answered when it has then.
	late     func(since time.Time)
	answered func()
	// hung is called when the daemon has not answered for longer than answers.
	hung func()
	// answers is how long the daemon may take to answer. 0: a minute.
	answers time.Duration

	silent time.Time // since when there is no session; of run alone

	mu    sync.Mutex
	conn  *libvirt.Connection // nil: there is none
	ready chan struct{}       // closed when conn is set
}

// steady is how long a session must last for its loss to be a new outage.
const steady = 10 * time.Second

// run connects until ctx ends.
func (s *session) run(ctx context.Context) {
	if s.answers == 0 {
		s.answers = time.Minute
	}
	outage := time.Now()
	s.silent = outage
	for ctx.Err() == nil {
		began := time.Now()
		if err := s.once(ctx); err != nil && ctx.Err() == nil {
			s.logger.Debug("no session with the libvirt daemon", "err", err)
		}
		if time.Since(began) > steady {
			outage = time.Now()
		}
		if time.Since(s.silent) > s.answers && ctx.Err() == nil {
			s.silent = time.Now() // for the next daemon
			s.hung()
		}
		select {
		case <-time.After(dialDelay(time.Since(outage))):
		case <-ctx.Done():
		}
	}
}

// dialDelay is how long to wait before dialling again in an outage that has lasted
// as long as given. The daemon does not signal that its socket is there, and an
// attempt costs next to nothing, so the first ones follow each other at once: they
// are part of the guest's start. Later the delay stays a small part of the outage.
func dialDelay(outage time.Duration) time.Duration {
	const shortest, longest, part = 2 * time.Millisecond, time.Second, 32
	return min(max(outage/part, shortest), longest)
}

// once connects and passes events on until a connection is lost.
func (s *session) once(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// A daemon that takes connections and does not answer hangs, before its first answer
	// or after it. It may take long at its start, when it finds out what QEMU can do.
	late := time.AfterFunc(s.answers, cancel)
	defer late.Stop()
	conn, err := libvirt.Dial(ctx, s.socket)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	listener, err := libvirt.Dial(ctx, s.socket)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, listener.Close()) }()
	events, err := listener.Events(ctx)
	if err != nil {
		return err
	}
	pulse, err := libvirt.Dial(ctx, s.socket)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pulse.Close()) }()
	if !late.Stop() {
		return fmt.Errorf("the daemon did not answer all within %s: %w", s.answers, context.DeadlineExceeded)
	}
	var watch sync.WaitGroup
	watch.Go(func() { s.watch(ctx, pulse.Ping) })
	s.up(ctx, conn)
	s.set(conn)
	defer func() {
		cancel()
		watch.Wait() // what it says is about this session
		s.unset()
		s.silent = time.Now()
	}()
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return nil
			}
			s.event(e)
		case <-conn.Lost():
			return nil
		case <-listener.Lost():
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

const (
	// asks is the time between two questions whether the daemon answers.
	asks = 5 * time.Second
	// atOnce is how long an answer takes at most from a daemon that works on a busy node.
	atOnce = time.Second
)

// watch asks the daemon for an answer again and again, until the session ends. Its
// connection is for this alone: the daemon works on a few calls of each at once, and
// calls about a domain may all wait for a QEMU that hangs.
func (s *session) watch(ctx context.Context, ping func(context.Context) error) {
	for {
		select {
		case <-time.After(min(asks, s.answers/2)):
		case <-ctx.Done():
			return
		}
		if err := s.ask(ctx, ping); errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			s.hung()
			return
		}
	}
}

// ask asks once.
func (s *session) ask(ctx context.Context, ping func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.answers)
	defer cancel()
	asked, answer := time.Now(), make(chan error, 1)
	go func() { answer <- ping(ctx) }()
	select {
	case err := <-answer:
		return err
	case <-time.After(atOnce):
		s.late(asked)
	}
	err := <-answer
	if err == nil {
		s.answered()
	}
	return err
}

func (s *session) set(c *libvirt.Connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn = c
	close(s.ready)
}

func (s *session) unset() {
	s.mu.Lock()
	s.conn, s.ready = nil, make(chan struct{})
	s.mu.Unlock()
	s.down()
}

// connection returns the connection for calls, and waits for one while ctx
// lasts.
func (s *session) connection(ctx context.Context) (*libvirt.Connection, error) {
	for {
		s.mu.Lock()
		conn, ready := s.conn, s.ready
		s.mu.Unlock()
		if conn != nil {
			return conn, nil
		}
		select {
		case <-ready:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the libvirt daemon: %w", context.Cause(ctx))
		}
	}
}
