package terminal

import (
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Terminal is the terminal that a container has for its input and output, which
// `kubectl attach -it` connects to. The console of a guest and the lines of a log
// share it: a line of the log begins at the start of a line, and so does what the
// guest writes after it. The writers may be used from any goroutine.
type Terminal struct {
	file *os.File
	mode unix.Termios // that it had before

	mu     sync.Mutex
	last   part
	middle bool // the guest's last line has no end yet
}

// part is whose output was written last.
type part string

const (
	ofGuest part = "guest"
	ofLog   part = "log"
)

// Open makes a terminal raw: what is typed is read as it is, and what is
// written is shown as it is. Ctrl-C is a byte for the guest then, and no signal. It
// returns nil if the file is no terminal, and is not changed then.
func Open(file *os.File) (*Terminal, error) {
	fd := int(file.Fd())
	mode, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, nil //nolint:nilerr // it is no terminal
	}
	before := *mode
	mode.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	mode.Oflag &^= unix.OPOST
	mode.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	mode.Cflag = mode.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	mode.Cc[unix.VMIN], mode.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, mode); err != nil {
		return nil, fmt.Errorf("make %s raw: %w", file.Name(), err)
	}
	return &Terminal{file: file, mode: before}, nil
}

// Close gives the terminal the mode that it had before. It does not close the file.
func (t *Terminal) Close() error {
	if err := unix.IoctlSetTermios(int(t.file.Fd()), unix.TCSETS, &t.mode); err != nil {
		return fmt.Errorf("restore the mode of %s: %w", t.file.Name(), err)
	}
	return nil
}

// Read reads what is typed.
func (t *Terminal) Read(b []byte) (int, error) { return t.file.Read(b) }

// Guest is the writer for the console of the guest.
func (t *Terminal) Guest() io.Writer { return sharer{t, ofGuest} }

// Log is the writer for lines of a log. Each write must be whole lines. It waits for
// a terminal that takes nothing for a moment only, and drops lines after that: a
// reader that has stopped must not stop the writer.
func (t *Terminal) Log() io.Writer {
	l := &lines{out: sharer{t, ofLog}, queue: make(chan line, queued)}
	go l.run()
	return l
}

// sharer writes its part.
type sharer struct {
	terminal *Terminal
	part     part
}

// Write implements io.Writer.
func (s sharer) Write(b []byte) (int, error) {
	t := s.terminal
	if len(b) == 0 {
		return 0, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	between := ""
	switch {
	case s.part == ofLog && t.middle:
		between = "\r\n"
	case s.part == ofGuest && t.last == ofLog:
		between = "\r"
	}
	t.last, t.middle = s.part, s.part == ofGuest && b[len(b)-1] != '\n'
	n, err := t.file.Write(append([]byte(between), b...))
	return max(0, n-len(between)), err
}
