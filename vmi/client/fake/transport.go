package fake

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
)

// roundTrip lets the handler answer the request without a network: the body of
// the answer is read while it is written. cancel ends the request's context.
func roundTrip(r *http.Request, cancel context.CancelFunc, h http.Handler) (*http.Response, error) {
	out, in := io.Pipe()
	w := &answer{header: http.Header{}, body: in, begun: make(chan struct{}), hijacked: make(chan net.Conn, 1)}
	stop := context.AfterFunc(r.Context(), func() { _ = in.CloseWithError(r.Context().Err()) })
	go func() {
		defer cancel()
		defer stop()
		if r.Body == nil {
			r.Body = http.NoBody
		}
		h.ServeHTTP(w, r)
		w.WriteHeader(http.StatusOK)
		_ = in.Close()
		_ = r.Body.Close()
	}()
	select {
	case <-w.begun:
	case wire := <-w.hijacked:
		return upgraded(r, wire)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return &http.Response{
		Status: http.StatusText(w.code), StatusCode: w.code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: body{out, cancel}, ContentLength: -1, Request: r,
	}, nil
}

// answer writes an answer into a pipe.
type answer struct {
	header http.Header
	body   *io.PipeWriter
	once   sync.Once
	code   int
	begun  chan struct{}
	// hijacked gets the client's end of a connection that the handler has taken over.
	hijacked chan net.Conn
}

// Hijack implements http.Hijacker.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	ours, theirs := net.Pipe()
	a.hijacked <- theirs
	return ours, bufio.NewReadWriter(bufio.NewReader(ours), bufio.NewWriter(ours)), nil
}

// upgraded is the answer that the handler writes to a connection that it has taken over.
func upgraded(r *http.Request, wire net.Conn) (*http.Response, error) {
	b := bufio.NewReader(wire)
	out, err := http.ReadResponse(b, r)
	if err != nil {
		_ = wire.Close()
		return nil, err
	}
	out.Body = connection{b, wire}
	return out, nil
}

// connection is a connection of which a part was read.
type connection struct {
	io.Reader
	io.WriteCloser
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(code int) {
	a.once.Do(func() {
		a.code = code
		close(a.begun)
	})
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// body is the body of an answer, whose handler ends when it is closed.
type body struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (b body) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}
