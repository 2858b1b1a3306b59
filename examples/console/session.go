package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/podvisor/podvisor/vmi/client"
)

// leaves is Ctrl-], the key that leaves the console.
const leaves = 0x1d

// errLeft is the end of a session by its user.
var errLeft = errors.New("the user has left")

// session copies what is typed to the guest, and what the guest writes to out, until the
// user leaves, the context ends or the stream does. It closes the stream. An input that
// has ended leaves the output open.
func session(ctx context.Context, stream client.Stream, in io.Reader, out io.Writer) error {
	ended := make(chan error, 2)
	go func() {
		_, err := io.Copy(out, stream)
		if err != nil {
			err = fmt.Errorf("the console was ended: by another client, by the guest's end, or by a part of the cluster that was replaced: %w", err)
		}
		ended <- err
	}()
	go func() {
		if err := typed(stream, in); err != nil {
			ended <- err
		}
	}()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	closed := stream.Close()
	if errors.Is(err, errLeft) {
		return closed
	}
	return err
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
