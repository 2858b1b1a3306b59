package testlog

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// event is what `go test -json` writes in a line (go doc test2json).
type event struct {
	Action  string
	Package string
	Test    string
	Elapsed float64
	Output  string
}

// packageLog is what a package wrote that may have to be shown.
type packageLog struct {
	tests []string // in the order of their first lines, "" among them
	lines map[string][]string
}

func (p *packageLog) add(test, line string) {
	if _, known := p.lines[test]; !known {
		p.tests = append(p.tests, test)
	}
	p.lines[test] = append(p.lines[test], line)
}

// Print reads events until their end. It writes to out what a person reads, and to times
// a line for each test that ended. A line that is no event is printed as it is.
func Print(events io.Reader, out, times io.Writer) error {
	logs := map[string]*packageLog{}
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			if err := printLine(logs, line, out, times); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return printUnfinished(logs, out)
		}
		if err != nil {
			return err
		}
	}
}

func printLine(logs map[string]*packageLog, line string, out, times io.Writer) error {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
		_, err := io.WriteString(out, line)
		return err
	}
	p := logs[e.Package]
	if p == nil {
		p = &packageLog{lines: map[string][]string{}}
		logs[e.Package] = p
	}
	switch e.Action {
	case "build-output":
		_, err := io.WriteString(out, e.Output)
		return err
	case "output":
		p.add(e.Test, e.Output)
	case "pass", "skip", "fail":
		if e.Test == "" {
			delete(logs, e.Package)
			return p.print(out, e.Action == "fail")
		}
		if e.Action != "fail" {
			p.lines[e.Test] = nil
		}
		if !strings.Contains(e.Test, "/") {
			_, err := fmt.Fprintf(times, "%.2f %s %s\n", e.Elapsed, e.Test, e.Package)
			return err
		}
	}
	return nil
}

// print prints the last line of the package, and if it failed all that was kept of its
// tests before.
func (p *packageLog) print(out io.Writer, failed bool) error {
	own := p.lines[""]
	if !failed {
		own = own[max(0, len(own)-1):]
	}
	for _, test := range p.tests {
		if test == "" || !failed {
			continue
		}
		if err := printTest(out, p.lines[test]); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, strings.Join(own, ""))
	return err
}

// printTest prints the result of a test and then what it wrote.
func printTest(out io.Writer, lines []string) error {
	var result, rest strings.Builder
	for _, line := range lines {
		switch {
		case strings.HasPrefix(line, "=== "):
		case strings.HasPrefix(strings.TrimSpace(line), "--- FAIL: "):
			result.WriteString(line)
		default:
			rest.WriteString(line)
		}
	}
	_, err := io.WriteString(out, result.String()+rest.String())
	return err
}

// printUnfinished prints all of the packages whose ends are missing, as they are where
// the go command was killed.
func printUnfinished(logs map[string]*packageLog, out io.Writer) error {
	var errs []error
	for _, p := range logs {
		errs = append(errs, p.print(out, true))
	}
	return errors.Join(errs...)
}
