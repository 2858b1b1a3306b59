package console

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"
)

const (
	// mostToConnect is how long a socket of QEMU may be busy with the connections before.
	mostToConnect = 5 * time.Second
	// connectAgain is the time to the next attempt.
	connectAgain = 5 * time.Millisecond
)

// Connect connects to a socket of QEMU's. QEMU keeps one connection waiting and has the kernel
// refuse others until it has looked at it: Connect tries again for a while, so that several
// who connect at once come one after the other.
func Connect(ctx context.Context, socket string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, mostToConnect)
	defer cancel()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if !errors.Is(err, syscall.EAGAIN) {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(connectAgain):
		}
	}
}
