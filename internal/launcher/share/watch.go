package share

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"
)

// retry is how long a server that is not there yet is not looked for.
const retry = 20 * time.Millisecond

// Watch waits until the server of a socket can be connected to, and returns a channel
// that is closed when that server ends, or when watched ends. An error says that there
// is no server when ctx ends.
func Watch(ctx, watched context.Context, socket string) (<-chan struct{}, error) {
	var d net.Dialer
	for {
		conn, err := d.DialContext(ctx, "unix", alivePath(socket))
		if err == nil {
			ended := make(chan struct{})
			stop := context.AfterFunc(watched, func() { _ = conn.Close() })
			go func() {
				defer close(ended)
				defer stop()
				defer conn.Close()
				_, _ = io.Copy(io.Discard, conn)
			}()
			return ended, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("connect to the server of %s: %w", socket, err)
		case <-time.After(retry):
		}
	}
}
