package websocket

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The opcodes of frames.
const (
	opContinuation = 0x0
	opText         = 0x1
	opBinary       = 0x2
	opClose        = 0x8
	opPing         = 0x9
	opPong         = 0xa
)

// The codes of close frames.
const (
	codeNormal   = 1000
	codeProtocol = 1002
	codeTooLarge = 1009
)

// maxControl is the length of the payload of a control frame at most.
const maxControl = 125

// errProtocol is wrapped by the errors of frames that are against the protocol.
var errProtocol = errors.New("the peer violates the websocket protocol")

// errTooLarge is the error of a datagram that is larger than UDP has any.
var errTooLarge = fmt.Errorf("a datagram has more than %d bytes", maxDatagram)

// header is the header of a frame.
type header struct {
	final  bool
	op     byte
	masked bool
	key    [4]byte
	length uint64
}

// control reports whether the frame is a control frame.
func (h header) control() bool { return h.op >= opClose }

// readHeader reads the header of a frame. The error is io.EOF only before its first byte.
func readHeader(r io.Reader) (header, error) {
	var b [8]byte
	if _, err := io.ReadFull(r, b[:2]); err != nil {
		return header{}, err
	}
	h := header{final: b[0]&0x80 != 0, op: b[0] & 0x0f, masked: b[1]&0x80 != 0, length: uint64(b[1] & 0x7f)}
	if b[0]&0x70 != 0 {
		return header{}, fmt.Errorf("%w: a frame has reserved bits %#x", errProtocol, b[0]&0x70)
	}
	size := map[uint64]int{126: 2, 127: 8}[h.length]
	if size > 0 {
		if _, err := io.ReadFull(r, b[8-size:]); err != nil {
			return header{}, cut(err)
		}
		clear(b[:8-size])
		h.length = binary.BigEndian.Uint64(b[:])
	}
	if h.masked {
		if _, err := io.ReadFull(r, h.key[:]); err != nil {
			return header{}, cut(err)
		}
	}
	return h, h.check()
}

// check says what in the header is against the protocol.
func (h header) check() error {
	switch {
	case h.op > opBinary && h.op < opClose, h.op > opPong:
		return fmt.Errorf("%w: a frame has the opcode %#x", errProtocol, h.op)
	case h.length > 1<<63-1:
		return fmt.Errorf("%w: a frame has %d bytes", errProtocol, h.length)
	case h.control() && (h.length > maxControl || !h.final):
		return fmt.Errorf("%w: a control frame has %d bytes or is a part of one", errProtocol, h.length)
	}
	return nil
}

// appendTo appends the header in its shortest form.
func (h header) appendTo(b []byte) []byte {
	first, mask := h.op, byte(0)
	if h.final {
		first |= 0x80
	}
	if h.masked {
		mask = 0x80
	}
	switch {
	case h.length < 126:
		b = append(b, first, mask|byte(h.length))
	case h.length < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, first, mask|126), uint16(h.length))
	default:
		b = binary.BigEndian.AppendUint64(append(b, first, mask|127), h.length)
	}
	if h.masked {
		b = append(b, h.key[:]...)
	}
	return b
}

// mask masks or unmasks b, which begins at the offset of its frame.
func mask(b []byte, key [4]byte, offset uint64) {
	var k [8]byte
	for i := range k {
		k[i] = key[(offset+uint64(i))%4]
	}
	word := binary.LittleEndian.Uint64(k[:])
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)^word)
		b = b[8:]
	}
	for i := range b {
		b[i] ^= k[i]
	}
}

// cut makes of the end of the wire that it was cut.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// ending is how the stream ended, by the payload of a close frame: io.EOF for the code
// 1000 and for none, an error that wraps io.ErrUnexpectedEOF for any other.
func ending(payload []byte) error {
	if len(payload) < 2 {
		return io.EOF
	}
	code := binary.BigEndian.Uint16(payload)
	if code == codeNormal {
		return io.EOF
	}
	return fmt.Errorf("the stream was closed with the code %d, %q: %w", code, payload[2:], io.ErrUnexpectedEOF)
}
