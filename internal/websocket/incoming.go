package websocket

import (
	"fmt"
	"io"
)

// incoming is the message that is being received.
type incoming struct {
	conn *Conn
	// open says that frames of the message are still to come; dropped that it is none
	// of ours, as a text message.
	open, dropped bool
	// datagram is what there is of the message, in datagrams.
	datagram []byte
	buffer   [chunk]byte
}

// frame receives one frame. The error io.EOF is the end of the stream.
func (m *incoming) frame() error {
	h, err := readHeader(m.conn.in)
	if err != nil {
		return cut(err)
	}
	if h.masked != (m.conn.side == server) {
		return fmt.Errorf("%w: a frame is masked by the server or not by the client", errProtocol)
	}
	if h.control() {
		return m.control(h)
	}
	switch {
	case m.open != (h.op == opContinuation):
		return fmt.Errorf("%w: a message begins within another or has no beginning", errProtocol)
	case !m.open:
		m.dropped, m.datagram = h.op == opText, m.datagram[:0]
	}
	m.open = !h.final
	if err := m.payload(h); err != nil {
		return err
	}
	if m.conn.framing == Datagrams && h.final && !m.dropped {
		m.deliver(m.datagram)
	}
	return nil
}

// payload receives the payload of a frame of data.
func (m *incoming) payload(h header) error {
	if m.conn.framing == Datagrams && !m.dropped && uint64(len(m.datagram))+h.length > maxDatagram {
		return errTooLarge
	}
	for at := uint64(0); at < h.length; {
		b := m.buffer[:min(h.length-at, chunk)]
		// What is there is passed on: the rest of a large frame may come later.
		n, err := m.conn.in.Read(b)
		if err != nil {
			return cut(err)
		}
		b = b[:n]
		if h.masked {
			mask(b, h.key, at)
		}
		at += uint64(n)
		switch {
		case m.dropped:
		case m.conn.framing == Datagrams:
			m.datagram = append(m.datagram, b...)
		case n > 0:
			m.deliver(b)
		}
	}
	return nil
}

// deliver waits until the user has read b. If the user has closed, b is dropped.
func (m *incoming) deliver(b []byte) { _, _ = m.conn.inner.Write(b) }

// control receives a control frame.
func (m *incoming) control(h header) error {
	b := make([]byte, h.length)
	if _, err := io.ReadFull(m.conn.in, b); err != nil {
		return cut(err)
	}
	if h.masked {
		mask(b, h.key, 0)
	}
	switch h.op {
	case opPing:
		return m.conn.write(opPong, b)
	case opClose:
		return ending(b)
	}
	return nil
}
