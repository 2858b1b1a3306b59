package served

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Field is a field that is not served, or one value of a field that is.
type Field struct {
	// Path is where the field is in an object, without the kind. It stands for all
	// that is below it. In the table, [] marks the elements of a list and {} the
	// values of a map; in an object, they are the index or the key. Empty: the whole
	// object, because the kind is not served.
	Path string
	// Value is the only value of the field that is not served. Empty: no value is.
	Value string
	// Why is the reason, without a period.
	Why string
	// Refused says that the field will not be served. Why then says what to use
	// instead, and package validate calls the field a fault. Not set: the field
	// enters the schema when its effect is built.
	Refused bool
}

// String says what is not served and why, in one line that begins with the path.
func (f Field) String() string {
	state := f.state()
	switch {
	case f.Value != "":
		return fmt.Sprintf("%s: the value %q is %s%s", f.Path, f.Value, state, f.Why)
	case f.Path == "":
		return "the kind is " + state + f.Why
	}
	return f.Path + ": " + state + f.Why
}

// Sentence is String without the path, as the API server and admission say it of the field
// of an object, which they name themselves.
func (f Field) Sentence() string { return f.state() + f.Why }

func (f Field) state() string {
	if f.Refused {
		return "not served: "
	}
	return "not served yet: "
}

// Fields are those of one kind.
type Fields []Field

// Unserved are the fields of a kind that are not served, sorted by their paths:
// none if all are, or if the kind is not of package vmi.
func Unserved(kind string) Fields { return slices.Clone(unserved[kind]) }

// In are those of the fields that the object sets, with their paths in it and
// sorted by them. A field is set as soon as it is there, even if it is null.
func (l Fields) In(object map[string]any) Fields {
	var set Fields
	l.visit(object, func(f Field, _ func()) { set = append(set, f) })
	slices.SortStableFunc(set, func(a, b Field) int { return compare(a.Path, b.Path) })
	return set
}

// Prune takes the fields out of the object, and with each every object around it
// that has nothing else. Elements of lists and values of maps stay, though empty.
func (l Fields) Prune(object map[string]any) { l.prune(object) }

// prune is Prune, and says that there was something to take out.
func (l Fields) prune(object map[string]any) (found bool) {
	l.visit(object, func(_ Field, drop func()) { drop(); found = true })
	return found
}

// visit calls found with each field that the object sets, and with what takes it
// out.
func (l Fields) visit(object map[string]any, found func(f Field, drop func())) {
	for _, f := range l {
		if !leads(object, f.Path) {
			continue
		}
		place{value: object, drop: stay}.follow(f.steps(), func(p place) {
			if f.Value == "" || p.value == f.Value {
				found(Field{p.path(), f.Value, f.Why, f.Refused}, p.drop)
			}
		})
	}
}

func (f Field) steps() []string {
	if f.Path == "" {
		return nil
	}
	return strings.Split(f.Path, ".")
}

// compare orders paths by their names, and elements of a list by their number.
func compare(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "["), strings.Split(b, "["), func(a, b string) int {
		// The number ends at the bracket, and the longer one is larger.
		return cmp.Or(cmp.Compare(strings.Index(a, "]"), strings.Index(b, "]")), strings.Compare(a, b))
	})
}
