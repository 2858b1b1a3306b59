package main

import (
	"encoding/binary"
	"io"
	"net"
)

// A screen for tests: of one colour, which is red, and green once a key was pressed.
const (
	screenWidth  = 160
	screenHeight = 100
)

// serveRFB serves the screen, by RFB 3.8 (RFC 6143) without a password, and reports the keys
// that are pressed.
func serveRFB(c net.Conn, keys chan<- uint32) error {
	b := make([]byte, 20)
	read := func(n int) error { _, err := io.ReadFull(c, b[:n]); return err }
	write := func(p []byte) error { _, err := c.Write(p); return err }
	pixel := []byte{32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0, 0, 0, 0}
	start := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, screenWidth), screenHeight)
	start = append(append(start, pixel...), 0, 0, 0, 4, 't', 'e', 's', 't')
	for _, step := range []func() error{
		func() error { return write([]byte("RFB 003.008\n")) },
		func() error { return read(12) },
		func() error { return write([]byte{1, 1}) },
		func() error { return read(1) },
		func() error { return write([]byte{0, 0, 0, 0}) },
		func() error { return read(1) },
		func() error { return write(start) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	red, green, pressed, asked := pixel[10], pixel[11], false, false
	frame := func() error {
		shift := red
		if pressed {
			shift = green
		}
		f := binary.BigEndian.AppendUint16([]byte{0, 0, 0, 1, 0, 0, 0, 0}, screenWidth)
		f = append(binary.BigEndian.AppendUint16(f, screenHeight), 0, 0, 0, 0) // raw
		for range screenWidth * screenHeight {
			f = binary.LittleEndian.AppendUint32(f, 255<<shift)
		}
		return write(f)
	}
	for sent := false; ; {
		if err := read(1); err != nil {
			return err
		}
		var err error
		switch b[0] {
		case 0: // SetPixelFormat
			if err = read(19); err == nil {
				red, green = b[3+10], b[3+11]
			}
		case 2: // SetEncodings
			if err = read(3); err == nil {
				_, err = io.CopyN(io.Discard, c, 4*int64(binary.BigEndian.Uint16(b[1:])))
			}
		case 3: // FramebufferUpdateRequest
			err, asked = read(9), true
		case 4: // KeyEvent
			if err = read(7); err == nil && b[0] == 1 {
				pressed, sent = true, false
				keys <- binary.BigEndian.Uint32(b[3:])
			}
		case 5: // PointerEvent
			err = read(5)
		case 6: // ClientCutText
			if err = read(7); err == nil {
				_, err = io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(b[3:])))
			}
		}
		if err == nil && asked && !sent {
			err, asked, sent = frame(), false, true
		}
		if err != nil {
			return err
		}
	}
}
