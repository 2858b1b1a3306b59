package main

import (
	"regexp"
	"strings"
)

// item is an item of a list in a manifest, with the comment above it that names sets of
// kinds.
type item struct {
	// from and to are the lines of the item, the last one not among them. The comment is
	// the line before.
	from, to int
	// text is what the item is to be, and empty if it is to go. More are the items that
	// are to follow it.
	text string
	more []string
}

// family are the items of one list with the same comment.
type family struct {
	comment string
	sets    []string
	// role is the name of the object that the list is in.
	role  string
	items []*item
}

var (
	commented = regexp.MustCompile(`^( *)# kinds: (.+)$`)
	named     = regexp.MustCompile(`^  name: (\S+)$`)
)

// families finds the items in the lines.
func families(lines []string) []*family {
	var out []*family
	open := map[int]map[string]*family{} // by indentation and comment
	role := ""
	for n, line := range lines {
		if strings.TrimSpace(line) == "" {
			continue
		}
		if m := named.FindStringSubmatch(line); m != nil {
			role = m[1]
		}
		// A line further to the left ends the lists.
		for indent := range open {
			if indentation(line) < indent || line == "---" {
				delete(open, indent)
			}
		}
		m := commented.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		indent := len(m[1])
		if open[indent] == nil {
			open[indent] = map[string]*family{}
		}
		f := open[indent][line]
		if f == nil {
			f = &family{comment: line, sets: strings.Split(m[2], ", "), role: role}
			open[indent][line] = f
			out = append(out, f)
		}
		to := n + 2
		for to < len(lines) && indentation(lines[to]) > indent {
			to++
		}
		f.items = append(f.items, &item{from: n + 1, to: to, text: strings.Join(lines[n+1:to], "\n")})
	}
	return out
}

func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// replaced are the lines with the texts of the items.
func replaced(lines []string, all []*family) string {
	at := map[int]*item{}
	comment := map[int]string{}
	for _, f := range all {
		for _, i := range f.items {
			at[i.from-1], comment[i.from-1] = i, f.comment
		}
	}
	var out []string
	for n := 0; n < len(lines); n++ {
		i := at[n]
		if i == nil {
			out = append(out, lines[n])
			continue
		}
		if i.text != "" {
			out = append(out, comment[n], i.text)
		}
		for _, m := range i.more {
			out = append(out, comment[n], m)
		}
		n = i.to - 1
	}
	return strings.Join(out, "\n")
}
