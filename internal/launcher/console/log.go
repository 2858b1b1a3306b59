package console

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// backlog is how much of the console is kept for a writer that is slow, in bytes.
const backlog = 1 << 20

// Log copies what the guest writes to its serial port from QEMU to a writer.
//
// QEMU writes to a pipe with a name, as it would to a log file, so nothing is
// kept that would grow. It stops when the pipe is full; so the pipe is emptied at
// once, and what the writer does not take in time is dropped, with a note of how
// much.
type Log struct {
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

// OpenLog makes the pipe at path and copies until Close.
func OpenLog(path string, out io.Writer) (*Log, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return nil, &os.PathError{Op: "mkfifo", Path: path, Err: err}
	}
	// Open for writing, too: a pipe without a writer is at its end, and one
	// without a reader blocks its writers or ends them with a signal.
	pipe, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	l := &Log{pipe: pipe, out: out, written: make(chan struct{})}
	l.filled = sync.NewCond(&l.mu)
	l.read.Go(l.take)
	go l.write()
	return l, nil
}

// take reads from the pipe until it is closed for reading.
func (l *Log) take() {
	buf := make([]byte, 32<<10)
	for {
		n, err := l.pipe.Read(buf)
		l.keep(buf[:n])
		if err != nil {
			return
		}
	}
}

func (l *Log) keep(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fits := min(len(b), backlog-len(l.pending))
	l.pending = append(l.pending, b[:fits]...)
	l.dropped += len(b) - fits
	l.filled.Signal()
}

// write writes until there is nothing more.
func (l *Log) write() {
	defer close(l.written)
	for {
		l.mu.Lock()
		for len(l.pending) == 0 && !l.closed {
			l.filled.Wait()
		}
		b, dropped := l.pending, l.dropped
		l.pending, l.dropped = nil, 0
		l.mu.Unlock()
		if len(b) == 0 {
			return
		}
		if dropped > 0 {
			b = fmt.Appendf(b, "\n[%d bytes of the console are lost: they were not read fast enough]\n", dropped)
		}
		_, _ = l.out.Write(b) // a console that cannot be written is no reason to stop the guest
	}
}

// Close takes what QEMU has left in the pipe and returns a channel that is closed
// when all of it is written. The pipe stays where it is.
func (l *Log) Close() <-chan struct{} {
	_ = l.pipe.SetReadDeadline(time.Unix(1, 0)) // ends take
	l.read.Wait()
	for buf := make([]byte, 32<<10); ; {
		n, err := unix.Read(int(l.pipe.Fd()), buf)
		if n <= 0 || err != nil {
			break
		}
		l.keep(buf[:n])
	}
	_ = l.pipe.Close()
	l.mu.Lock()
	l.closed = true
	l.filled.Signal()
	l.mu.Unlock()
	return l.written
}
