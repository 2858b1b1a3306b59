package console

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
)

// Serial opens connections to a guest's serial port, of which there is one at a
// time, and types into the one that is open. Its methods may be called from any
// goroutine.
type Serial struct {
	// Socket is where QEMU serves the port. Required.
	Socket string

	mu   sync.Mutex
	conn net.Conn // the last one that was opened
}

// Open connects to the port and ends the connection before. ctx bounds the opening
// and not the connection, which the caller closes.
func (s *Serial) Open(ctx context.Context) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		_ = s.conn.Close() // fails if its owner has closed it
		s.conn = nil
	}
	return s.dial(ctx)
}

// dial makes a new connection the one that is open. The lock is held.
func (s *Serial) dial(ctx context.Context) (net.Conn, error) {
	conn, err := Connect(ctx, s.Socket)
	if err != nil {
		return nil, fmt.Errorf("open the serial console: %w", err)
	}
	s.conn = conn
	return conn, nil
}

// Type writes to the port beside the console that is open, or without one: then what
// the guest answers is in its log only. It ends no console. It takes as long as the
// guest takes to read; ctx bounds the opening.
func (s *Serial) Type(ctx context.Context, b []byte) error {
	conn, err := s.current(ctx, nil)
	if err != nil {
		return err
	}
	n, err := conn.Write(b)
	if err == nil {
		return nil
	}
	// Another console was opened, or the one that was open has ended.
	if conn, err = s.current(ctx, conn); err != nil {
		return err
	}
	if _, err := conn.Write(b[n:]); err != nil {
		return fmt.Errorf("write to the serial console: %w", err)
	}
	return nil
}

// current is the connection that is open, or a new one if that is none or over.
func (s *Serial) current(ctx context.Context, over net.Conn) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil && s.conn != over {
		return s.conn, nil
	}
	conn, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	go func() { _, _ = io.Copy(io.Discard, conn) }() // ends with the connection; QEMU must not wait for a reader
	return conn, nil
}
