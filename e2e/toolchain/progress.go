package toolchain

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

// progress reads the output of the go command and shows how far it is: on a
// terminal by rewriting one line, elsewhere by a line every 15 seconds.
type progress struct {
	out   io.Writer
	tty   bool
	label string
	start time.Time
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

func startProgress(out io.Writer, label string) *progress {
	p := &progress{out: out, label: label, start: time.Now(), done: make(chan struct{}), tty: isTerminal(out)}
	every := 15 * time.Second
	if p.tty {
		every = 500 * time.Millisecond
	}
	fmt.Fprintf(out, "  building %s: the first time this takes minutes\n", label)
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
	return p
}

// begin says that the modules are there and how many packages they have.
func (p *progress) begin(total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total = total
}

// stop ends the display with a last line.
func (p *progress) stop() {
	close(p.done)
	p.ended.Wait()
	p.print()
	if p.tty {
		fmt.Fprintln(p.out)
	}
}

func (p *progress) print() {
	line := p.String()
	if p.tty {
		fmt.Fprintf(p.out, "\r%s\x1b[K", line)
		return
	}
	fmt.Fprintln(p.out, line)
}

// String is the line that says how far it is.
func (p *progress) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	elapsed := time.Since(p.start).Round(time.Second)
	if p.total == 0 {
		return fmt.Sprintf("  %s: modules downloaded: %d, %s", p.label, p.loaded, elapsed)
	}
	return fmt.Sprintf("  %s: packages compiled: %d of at most %d, %s", p.label, p.compiled, p.total, elapsed)
}

// said returns the last lines that were neither a package nor a download.
func (p *progress) said() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tail
}

// Write reads the output of the go command.
func (p *progress) Write(b []byte) (int, error) {
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

func (p *progress) line(s string) {
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

// lineCounter counts the lines written to it.
type lineCounter struct{ lines int }

func (c *lineCounter) Write(b []byte) (int, error) {
	c.lines += bytes.Count(b, []byte{'\n'})
	return len(b), nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
