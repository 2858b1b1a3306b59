package cluster

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// steps prints what has been done, with the seconds since the begin.
type steps struct {
	out     io.Writer
	begin   time.Time
	printed map[string]bool
}

func newSteps(out io.Writer) *steps {
	return &steps{out: out, begin: time.Now(), printed: map[string]bool{}}
}

// known sets the lines that are not printed.
func (s *steps) known(lines []string) {
	s.printed = map[string]bool{}
	for _, line := range lines {
		s.printed[line] = true
	}
}

// news prints the lines that have not been printed.
func (s *steps) news(lines []string) {
	for _, line := range lines {
		if !s.printed[line] {
			s.print("%s", line)
			s.printed[line] = true
		}
	}
}

func (s *steps) print(format string, args ...any) {
	fmt.Fprintf(s.out, "%6.1fs  %s\n", time.Since(s.begin).Seconds(), fmt.Sprintf(format, args...))
}

func indent(problems []Problem) string {
	lines := make([]string, 0, len(problems))
	for _, p := range problems {
		lines = append(lines, "  - "+p.String())
	}
	return strings.Join(lines, "\n")
}

// tail returns the last lines of a file, or nothing if it cannot be read.
func tail(path string, lines int) string {
	const most = 64 << 10
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > most {
		if _, err := f.Seek(-most, io.SeekEnd); err != nil {
			return ""
		}
	}
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return ""
	}
	all := bytes.Split(bytes.TrimRight(data, "\n"), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}
