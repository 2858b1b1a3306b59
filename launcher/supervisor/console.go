package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// backlog is how much of the console is kept for a writer that is slow.
const backlog = 1 << 20

// console copies what the guest writes to its serial port from QEMU to a
// writer.
//
// QEMU writes to a pipe with a name, as it would to a log file, so nothing is
// kept that would grow. It stands still when the pipe is full; so the pipe is
// emptied at once, and what the writer does not take in time is dropped, with a
// note of how much.
type console struct {
	pipe *os.File
	out  io.Writer

	mu      sync.Mutex
	filled  *sync.Cond // pending or closed has changed
	pending []byte
	dropped int
	closed  bool
	read    sync.WaitGroup
	written chan struct{} // closed when everything is written
}

// openConsole makes the pipe at path and copies until Close.
func openConsole(path string, out io.Writer) (*console, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return nil, &os.PathError{Op: "mkfifo", Path: path, Err: err}
	}
	// Open for writing, too: a pipe without a writer is at its end, and one
	// without a reader blocks or kills whoever opens it.
	pipe, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	c := &console{pipe: pipe, out: out, written: make(chan struct{})}
	c.filled = sync.NewCond(&c.mu)
	c.read.Go(c.take)
	go c.give()
	return c, nil
}

// take reads from the pipe until it is closed for reading.
func (c *console) take() {
	buf := make([]byte, 32<<10)
	for {
		n, err := c.pipe.Read(buf)
		c.keep(buf[:n])
		if err != nil {
			return
		}
	}
}

func (c *console) keep(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fits := min(len(b), backlog-len(c.pending))
	c.pending = append(c.pending, b[:fits]...)
	c.dropped += len(b) - fits
	c.filled.Signal()
}

// give writes until there is nothing more.
func (c *console) give() {
	defer close(c.written)
	for {
		c.mu.Lock()
		for len(c.pending) == 0 && !c.closed {
			c.filled.Wait()
		}
		b, dropped := c.pending, c.dropped
		c.pending, c.dropped = nil, 0
		c.mu.Unlock()
		if len(b) == 0 {
			return
		}
		if dropped > 0 {
			b = fmt.Appendf(b, "\n[%d bytes of the console are lost: they were not read fast enough]\n", dropped)
		}
		_, _ = c.out.Write(b) // a console that nobody takes is no reason to stop the guest
	}
}

// close takes what QEMU has left in the pipe and returns a channel that is
// closed when all of it is written.
func (c *console) close() <-chan struct{} {
	_ = c.pipe.SetReadDeadline(unixEpoch) // ends take
	c.read.Wait()
	for buf := make([]byte, 32<<10); ; {
		n, err := unix.Read(int(c.pipe.Fd()), buf)
		if n <= 0 || err != nil {
			break
		}
		c.keep(buf[:n])
	}
	_ = c.pipe.Close()
	c.mu.Lock()
	c.closed = true
	c.filled.Signal()
	c.mu.Unlock()
	return c.written
}
