// Package progress shows how far a build by the go command is.
package progress

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Build is a build that runs. It reads the output of the go command, and shows how far it
// is: on a terminal by rewriting one line, elsewhere by a line every 15 seconds. Its
// methods may be called at the same time, and Stop once, after Show.
type Build struct {
	label string
	start time.Time
	out   io.Writer
	tty   bool
	done  chan struct{}
	ended sync.WaitGroup

	mu       sync.Mutex
	partial  []byte
	total    int // packages; 0 while modules are downloaded
	compiled int
	loaded   int
	tail     []string // what was neither a package nor a download
}

// tailLines bounds what is kept for an error message.
const tailLines = 40

// New is a build that begins now.
func New(label string) *Build {
	return &Build{label: label, start: time.Now(), done: make(chan struct{})}
}

// Show shows the build on out, until Stop is called.
func (p *Build) Show(out io.Writer) {
	p.out, p.tty = out, isTerminal(out)
	every := 15 * time.Second
	if p.tty {
		every = 500 * time.Millisecond
	}
	fmt.Fprintf(out, "  building %s: the first time this takes minutes\n", p.label)
	p.ended.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-p.done:
				return
			case <-tick.C:
				p.print()
			}
		}
	})
}

// Begin says that the modules are there and how many packages they have.
func (p *Build) Begin(total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total = total
}

// Stop ends the display with a last line.
func (p *Build) Stop() {
	close(p.done)
	p.ended.Wait()
	p.print()
	if p.tty {
		fmt.Fprintln(p.out)
	}
}

func (p *Build) print() {
	line := p.String()
	if p.tty {
		fmt.Fprintf(p.out, "\r%s\x1b[K", line)
		return
	}
	fmt.Fprintln(p.out, line)
}

// String is the line that says how far it is.
func (p *Build) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	elapsed := time.Since(p.start).Round(time.Second)
	if p.total == 0 {
		return fmt.Sprintf("  %s: modules downloaded: %d, %s", p.label, p.loaded, elapsed)
	}
	return fmt.Sprintf("  %s: packages compiled: %d of at most %d, %s", p.label, p.compiled, p.total, elapsed)
}

// Said returns the last lines that were neither a package nor a download.
func (p *Build) Said() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tail
}

// Write reads the output of the go command.
func (p *Build) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.partial = append(p.partial, b...)
	for {
		i := bytes.IndexByte(p.partial, '\n')
		if i < 0 {
			return len(b), nil
		}
		p.line(string(p.partial[:i]))
		p.partial = p.partial[i+1:]
	}
}

func (p *Build) line(s string) {
	switch {
	case strings.HasPrefix(s, "go: downloading "):
		p.loaded++
	case s != "" && !strings.ContainsAny(s, " \t:#"):
		p.compiled++
	default:
		p.tail = append(p.tail, s)
		if len(p.tail) > tailLines {
			p.tail = p.tail[1:]
		}
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
