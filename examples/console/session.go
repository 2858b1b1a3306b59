package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// leaves is Ctrl-], the key that leaves the console.
const leaves = 0x1d

// errLeft is the end of a session by its user.
var errLeft = errors.New("the user has left")

// quiet is how long the guest may write nothing after the end of the input, as of a pipe or
// of /dev/null, before the session ends: what it answers is still shown.
const quiet = 5 * time.Second

// session copies what is typed to the guest, and what the guest writes to out, until the
// user leaves, the context ends or the stream does. It closes the stream. After the end of
// the input it ends when the guest has written nothing for a while.
func session(ctx context.Context, stream net.Conn, in io.Reader, out io.Writer) error {
	ended := make(chan error, 2)
	written, over := make(chan struct{}, 1), make(chan struct{})
	go func() {
		_, err := io.Copy(noticed{out, written}, stream)
		if err != nil {
			err = fmt.Errorf("the console was ended: by another client, by the guest's end, or by a part of the cluster that was replaced: %w", err)
		}
		ended <- err
	}()
	go func() {
		if err := typed(stream, in); err != nil {
			ended <- err
			return
		}
		close(over)
	}()
	err := await(ctx, ended, over, written)
	closed := stream.Close()
	if errors.Is(err, errLeft) {
		return closed
	}
	return err
}

// await waits until the session ends.
func await(ctx context.Context, ended <-chan error, over, written <-chan struct{}) error {
	var silent <-chan time.Time
	for {
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
			return nil
		case <-over:
			over, silent = nil, time.After(quiet)
		case <-written:
			if silent != nil {
				silent = time.After(quiet)
			}
		case <-silent:
			return errLeft
		}
	}
}

// noticed is an output that says when something was written.
type noticed struct {
	io.Writer
	written chan<- struct{}
}

// Write implements io.Writer.
func (n noticed) Write(b []byte) (int, error) {
	select {
	case n.written <- struct{}{}:
	default: // it is known
	}
	return n.Writer.Write(b)
}

// typed copies what is typed to the guest, up to the key that leaves.
func typed(stream io.Writer, in io.Reader) error {
	b := make([]byte, 1<<10)
	for {
		n, err := in.Read(b)
		keys, _, left := bytes.Cut(b[:n], []byte{leaves})
		if len(keys) > 0 {
			if _, err := stream.Write(keys); err != nil {
				return nil //nolint:nilerr // why is the error of the other direction
			}
		}
		switch {
		case left:
			return errLeft
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read the keys: %w", err)
		}
	}
}
