package control

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/podvisor/podvisor/internal/carry"
	"github.com/podvisor/podvisor/launcher/protocol"
)

// mostStreams is how many streams a server has open at once.
const mostStreams = 32

// maxHead is the longest head of a response that is read, in bytes.
const maxHead = 64 << 10

// upgradeRequest asks for the upgrade to token on path.
func upgradeRequest(path, token string) []byte {
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: launcher\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", path, token)
}

// Stream opens a stream. ctx bounds the opening and not the stream, which the
// caller closes. A refusal is an [*Error]; its reason is [protocol.ReasonUnknown]
// for a stream that the launcher does not know, and [protocol.ReasonUnavailable]
// for one that is not there now. Use [Client.Namespace] for
// [protocol.StreamNetworkNamespace].
//
// What arrives is a tenant's: raw bytes, at any rate, until either side ends.
func (c *Client) Stream(ctx context.Context, name protocol.Stream) (net.Conn, error) {
	conn, err := c.stream(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("open the stream %s: %w", name, unknown(err, "stream "+string(name)))
	}
	return conn, nil
}

func (c *Client) stream(ctx context.Context, name protocol.Stream) (_ net.Conn, err error) {
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, context.Cause(ctx), conn.Close())
		}
	}()
	stop := bound(ctx, conn)
	defer stop()
	if _, err := conn.Write(upgradeRequest(protocol.Path{Stream: name}.String(), protocol.StreamUpgrade)); err != nil {
		return nil, err
	}
	head := &io.LimitedReader{R: conn, N: maxHead}
	r := bufio.NewReader(head)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return nil, limited{err}
	}
	defer resp.Body.Close() // a response that switches protocols has none
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return nil, refusal(resp)
	}
	if !stop() {
		return nil, context.Cause(ctx)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	return carry.Unread(conn, r)
}

// bound ends what conn waits for when ctx ends, or when a launcher is due to have
// answered. The function that it returns stops that, and says whether it was in
// time.
func bound(ctx context.Context, conn net.Conn) (stop func() bool) {
	// Deadlines cannot be set on closed connections only, and then nothing waits.
	_ = conn.SetDeadline(time.Now().Add(answerTimeout))
	return context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
}

// getStream opens a stream, which is carried until either side or ctx ends. It returns
// when the stream is open: the request takes memory too.
func (s *Server) getStream(ctx context.Context, w http.ResponseWriter, r *http.Request, name protocol.Stream) {
	if r.Header.Get("Upgrade") != protocol.StreamUpgrade {
		s.refuse(w, http.StatusUpgradeRequired, protocol.ReasonMalformed, errors.New("ask for the upgrade "+protocol.StreamUpgrade))
		return
	}
	if name == protocol.StreamNetworkNamespace {
		s.sendNamespace(w, protocol.StreamUpgrade)
		return
	}
	open := s.config.Streams[name]
	if network, port, is := name.Port(); is && s.config.Port != nil {
		open = func(ctx context.Context) (net.Conn, error) { return s.config.Port(ctx, network, port) }
	}
	if open == nil {
		s.refuse(w, http.StatusNotFound, protocol.ReasonUnknown, fmt.Errorf("this launcher has no stream %q", name))
		return
	}
	select {
	case s.places <- struct{}{}:
	default:
		s.refuse(w, http.StatusConflict, protocol.ReasonBusy, fmt.Errorf("%d streams are open: close one of them", cap(s.places)))
		return
	}
	s.streams.Add(1)
	leave := func() { <-s.places; s.streams.Done() }
	inner, err := open(r.Context())
	if err != nil {
		leave()
		s.answer(w, err)
		return
	}
	outer, err := carry.Upgrade(w, protocol.StreamUpgrade)
	if err != nil {
		_ = inner.Close()
		leave()
		s.refuse(w, http.StatusServiceUnavailable, protocol.ReasonUnavailable, err) // the handler may be gone
		return
	}
	level := slog.LevelInfo
	if _, _, port := name.Port(); port { // of which a client opens one for each connection
		level = slog.LevelDebug
	}
	s.config.Logger.Log(ctx, level, "a stream begins", "stream", name)
	go func() {
		defer leave()
		carry.Both(ctx, outer, inner)
		s.config.Logger.Log(context.WithoutCancel(ctx), level, "a stream ended", "stream", name)
	}()
}
