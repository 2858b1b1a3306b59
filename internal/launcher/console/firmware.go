package console

import (
	"bytes"
	"io"
)

// failures are what a firmware writes when it has found nothing to boot from: SeaBIOS
// on a serial port, and the UEFI firmware of QEMU, which starts its shell then.
var failures = [][]byte{
	[]byte("No bootable device."),
	[]byte("No bootable option or device was found"),
	[]byte("UEFI Interactive Shell"),
}

// longest is how much of a line is looked at.
const longest = 256

// Firmware passes on what the guest writes to its serial port, and looks in it for
// the words of a firmware that has found nothing to boot from.
//
// The guest writes what it likes, so this is a hint and no more. Nothing is kept but
// the beginning of one line.
type Firmware struct {
	// Out takes everything. Required.
	Out io.Writer
	// First is called once, before the first byte is passed on. Nil: it is not reported.
	First func()
	// Failed is called with the words of each line that has them. Required.
	Failed func(words string)

	wrote bool
	line  []byte
	over  bool // the line was looked at already
}

// Write implements io.Writer.
func (f *Firmware) Write(b []byte) (int, error) {
	if len(b) > 0 && !f.wrote {
		f.wrote = true
		if f.First != nil {
			f.First()
		}
	}
	for rest := b; len(rest) > 0; {
		part, after, ends := bytes.Cut(rest, []byte{'\n'})
		rest = after
		f.look(part)
		if ends {
			f.line, f.over = f.line[:0], false
		}
	}
	return f.Out.Write(b)
}

// look looks at the line with a further part.
func (f *Firmware) look(part []byte) {
	if f.over {
		return
	}
	f.line = append(f.line, part[:min(len(part), longest-len(f.line))]...)
	f.over = len(f.line) == longest
	for _, words := range failures {
		if bytes.Contains(f.line, words) {
			f.over = true
			f.Failed(string(words))
			return
		}
	}
}
