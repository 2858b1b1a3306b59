package carry

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
)

// longestDatagram is the longest datagram, in bytes. UDP has none that is longer.
const longestDatagram = 1<<16 - 1

// lengthOfFrame is how many bytes a frame's length has.
const lengthOfFrame = 2

// Frames makes a stream of bytes of a connection of datagrams: each datagram follows its
// length as a number of two bytes, the most significant first. What is read from it are
// frames, at any number of bytes for a read. What is written to it becomes one datagram for
// each frame.
func Frames(datagrams net.Conn) net.Conn { return &frames{Conn: datagrams} }

// frames is a stream of what a connection of datagrams carries. One goroutine reads and
// another one writes.
type frames struct {
	net.Conn
	out []byte // what is read and not yet taken
	buf []byte // of out
	in  []byte // the beginning of a frame that is written
}

// Read implements net.Conn.
func (f *frames) Read(b []byte) (int, error) {
	if len(f.out) == 0 {
		if f.buf == nil {
			f.buf = make([]byte, lengthOfFrame+longestDatagram)
		}
		n, err := f.Conn.Read(f.buf[lengthOfFrame:])
		for errors.Is(err, syscall.ECONNREFUSED) { // that nothing takes the datagrams may change
			n, err = f.Conn.Read(f.buf[lengthOfFrame:])
		}
		if err != nil {
			return 0, err
		}
		binary.BigEndian.PutUint16(f.buf, uint16(n))
		f.out = f.buf[:lengthOfFrame+n]
	}
	n := copy(b, f.out)
	f.out = f.out[n:]
	return n, nil
}

// Write implements net.Conn. A datagram that the other end does not take is lost, as others
// are on the way.
func (f *frames) Write(b []byte) (int, error) {
	written := len(b)
	for {
		if len(f.in) < lengthOfFrame {
			n := min(lengthOfFrame-len(f.in), len(b))
			f.in, b = append(f.in, b[:n]...), b[n:]
			if len(f.in) < lengthOfFrame {
				return written, nil
			}
		}
		whole := lengthOfFrame + int(binary.BigEndian.Uint16(f.in))
		n := min(whole-len(f.in), len(b))
		f.in, b = append(f.in, b[:n]...), b[n:]
		if len(f.in) < whole {
			return written, nil
		}
		if _, err := f.Conn.Write(f.in[lengthOfFrame:]); errors.Is(err, net.ErrClosed) {
			return 0, err
		}
		f.in = f.in[:0]
	}
}

// CloseWrite says that there are no more datagrams, which nothing carries.
func (f *frames) CloseWrite() error { return errors.ErrUnsupported }

// Datagrams is the other end of [Frames]: a connection of datagrams over a stream of bytes.
// Each Read returns one datagram, of which what does not fit is lost, and each Write sends one.
// A read or write that fails ends the connection.
func Datagrams(stream net.Conn) net.Conn { return &datagrams{Conn: stream} }

type datagrams struct {
	net.Conn
	mu  sync.Mutex // held while a frame is written
	buf []byte     // of the frame that is written
}

// Read implements net.Conn.
func (d *datagrams) Read(b []byte) (int, error) {
	var length [lengthOfFrame]byte
	if _, err := io.ReadFull(d.Conn, length[:]); err != nil {
		return 0, err
	}
	whole := int(binary.BigEndian.Uint16(length[:]))
	n, err := io.ReadFull(d.Conn, b[:min(len(b), whole)])
	if err == nil && n < whole {
		_, err = io.CopyN(io.Discard, d.Conn, int64(whole-n))
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Write implements net.Conn.
func (d *datagrams) Write(b []byte) (int, error) {
	if len(b) > longestDatagram {
		return len(b), nil // lost, as one that is longer than the network takes
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.buf = append(binary.BigEndian.AppendUint16(d.buf[:0], uint16(len(b))), b...)
	if _, err := d.Conn.Write(d.buf); err != nil {
		return 0, err
	}
	return len(b), nil
}
