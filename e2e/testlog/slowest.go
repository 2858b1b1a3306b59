package testlog

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
)

// Slowest reads the lines that [Print] wrote to times, and writes those of the n tests
// that took longest.
func Slowest(times io.Reader, out io.Writer, n int) error {
	type test struct {
		seconds      float64
		name, folder string
	}
	var all []test
	lines := bufio.NewScanner(times)
	for lines.Scan() {
		var t test
		if _, err := fmt.Sscan(lines.Text(), &t.seconds, &t.name, &t.folder); err != nil {
			return fmt.Errorf("read %q: %w", lines.Text(), err)
		}
		all = append(all, t)
	}
	if err := lines.Err(); err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b test) int { return cmp.Compare(b.seconds, a.seconds) })
	for _, t := range all[:min(n, len(all))] {
		if _, err := fmt.Fprintf(out, "%7.1f s  %s  %s\n", t.seconds, t.name, t.folder); err != nil {
			return err
		}
	}
	return nil
}
