package console

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// Serial opens connections to a guest's serial port, of which there is one at a
// time. Its methods may be called from any goroutine.
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
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", s.Socket)
	if err != nil {
		return nil, fmt.Errorf("open the serial console: %w", err)
	}
	s.conn = conn
	return conn, nil
}
