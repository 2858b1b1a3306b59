package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/podvisor/podvisor/launcher/libvirt"
)

// session keeps two connections to the daemon, one for calls and one for
// events, and makes them anew when the daemon was started again.
type session struct {
	socket string
	logger *slog.Logger
	// up is called when there are new connections, before anybody uses them.
	up func(context.Context, *libvirt.Connection)
	// event is called for every event, in order.
	event func(libvirt.Event)

	mu    sync.Mutex
	conn  *libvirt.Connection // nil: there is none
	ready chan struct{}       // closed when conn is set
}

// run connects until ctx ends.
func (s *session) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := s.once(ctx); err != nil && ctx.Err() == nil {
			s.logger.Debug("no connection to the libvirt daemon", "err", err)
		}
		// The daemon says in no way that its socket is there, and an attempt
		// costs next to nothing.
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// once connects and passes events on until a connection is lost.
func (s *session) once(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
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
	s.up(ctx, conn)
	s.set(conn)
	defer s.unset()
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

func (s *session) set(c *libvirt.Connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn = c
	close(s.ready)
}

func (s *session) unset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn, s.ready = nil, make(chan struct{})
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
