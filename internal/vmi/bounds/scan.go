package bounds

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// scanner reads JSON from front to back.
type scanner struct {
	data []byte
	at   int
	// path leads to the value that is read.
	path   []step
	values int
	fault  *field.Error
}

// step is a part of a path: an index if it has no name.
type step struct {
	name  []byte
	index int
}

// maxName is how much of a name is shown.
const maxName = 63

// value reads a value. It is false when there is nothing more to read: at a fault, and
// where the text is no JSON.
func (s *scanner) value(l *list) bool {
	s.space()
	if s.values++; s.values > MaxValues {
		s.fault = fault(field.ErrorTypeTooMany, nil, fmt.Sprintf("must have at most %d values in all", MaxValues))
		return false
	}
	if s.at == len(s.data) {
		return false
	}
	switch s.data[s.at] {
	case '{', '[':
		if len(s.path) == MaxDepth {
			s.fault = fault(field.ErrorTypeTooMany, s.here(), fmt.Sprintf("must have at most %d levels", MaxDepth))
			return false
		}
		if s.data[s.at] == '{' {
			return s.object(l)
		}
		return s.list(l)
	case '"':
		text, ok := s.text()
		if len(text) > MaxString {
			s.fault = fault(field.ErrorTypeTooLong, s.here(), fmt.Sprintf("must have at most %d bytes", MaxString))
			return false
		}
		return ok
	}
	// A number, true, false or null.
	begin := s.at
	for s.at < len(s.data) && strings.IndexByte(",]} \t\r\n", s.data[s.at]) < 0 {
		s.at++
	}
	return s.at > begin
}

func (s *scanner) object(l *list) bool {
	s.path = append(s.path, step{})
	most := 0
	if l != nil && l.fields == nil { // a map
		most = l.max
	}
	for n := 0; ; n++ {
		s.at++
		s.space()
		if n == 0 && s.next('}') {
			return s.up()
		}
		if most > 0 && n == most {
			s.path = s.path[:len(s.path)-1]
			s.fault = fault(field.ErrorTypeTooMany, s.here(), fmt.Sprintf("must have at most %d entries", most))
			return false
		}
		if !s.begins('"') {
			return false
		}
		name, ok := s.text()
		if len(name) > MaxString {
			s.path = s.path[:len(s.path)-1]
			s.fault = fault(field.ErrorTypeTooLong, s.here(), fmt.Sprintf("a name must have at most %d bytes", MaxString))
			return false
		}
		s.space()
		if !ok || !s.next(':') {
			return false
		}
		s.path[len(s.path)-1] = step{name: name}
		if !s.value(l.named(name)) {
			return false
		}
		s.space()
		if s.next('}') {
			return s.up()
		}
		if !s.begins(',') {
			return false
		}
	}
}

func (s *scanner) list(l *list) bool {
	s.path = append(s.path, step{})
	var below *list
	most := 0
	if l != nil {
		below, most = l.below, l.max
	}
	for n := 0; ; n++ {
		s.at++
		s.space()
		if n == 0 && s.next(']') {
			return s.up()
		}
		if most > 0 && n == most {
			s.path = s.path[:len(s.path)-1]
			s.fault = fault(field.ErrorTypeTooMany, s.here(), fmt.Sprintf("must have at most %d items", most))
			return false
		}
		s.path[len(s.path)-1] = step{index: n}
		if !s.value(below) {
			return false
		}
		s.space()
		if s.next(']') {
			return s.up()
		}
		if !s.begins(',') {
			return false
		}
	}
}

// up ends a list or an object.
func (s *scanner) up() bool {
	s.path = s.path[:len(s.path)-1]
	return true
}

// named is what is known of the field or the value of that name.
func (l *list) named(name []byte) *list {
	switch {
	case l == nil:
		return nil
	case l.fields == nil:
		return l.below
	}
	return l.fields[string(name)]
}

// text reads a string and returns what is between its quotes.
func (s *scanner) text() ([]byte, bool) {
	begin := s.at + 1
	for s.at = begin; s.at < len(s.data); s.at++ {
		switch s.data[s.at] {
		case '"':
			s.at++
			return s.data[begin : s.at-1], true
		case '\\':
			s.at++
		}
	}
	s.at = len(s.data)
	return nil, false
}

func (s *scanner) space() {
	for s.at < len(s.data) && strings.IndexByte(" \t\r\n", s.data[s.at]) >= 0 {
		s.at++
	}
}

func (s *scanner) begins(c byte) bool { return s.at < len(s.data) && s.data[s.at] == c }

// next passes over the character, if it is the next one.
func (s *scanner) next(c byte) bool {
	if !s.begins(c) {
		return false
	}
	s.at++
	return true
}

// here is the path of the value that is read.
func (s *scanner) here() *field.Path {
	var at *field.Path
	for _, p := range s.path {
		switch {
		case p.name == nil && at == nil:
		case p.name == nil:
			at = at.Index(p.index)
		default:
			at = at.Child(strings.ToValidUTF8(string(p.name[:min(len(p.name), maxName)]), "?"))
		}
	}
	return at
}
