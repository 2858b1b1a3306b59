package served

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// place is a value in an object, or the object itself.
type place struct {
	at    *field.Path
	value any
	// drop takes the value out of what is around it.
	drop func()
}

// stay drops nothing.
func stay() {}

// path is empty for the object itself.
func (p place) path() string {
	if p.at == nil {
		return ""
	}
	return p.at.String()
}

// follow calls found for each place that the steps lead to from here: none if
// something on the way is not there, or is not what the steps take it for.
func (p place) follow(steps []string, found func(place)) {
	if len(steps) == 0 {
		found(p)
		return
	}
	m, _ := p.value.(map[string]any)
	name, elements := strings.CutSuffix(steps[0], "[]")
	name, values := strings.CutSuffix(name, "{}")
	below, ok := m[name]
	if !ok {
		return
	}
	at := p.at.Child(name)
	switch {
	case elements:
		list, _ := below.([]any)
		for i, e := range list {
			place{at.Index(i), e, stay}.follow(steps[1:], found)
		}
	case values:
		named, _ := below.(map[string]any)
		for k, v := range named {
			place{at.Key(k), v, stay}.follow(steps[1:], found)
		}
	default:
		drop := func() {
			delete(m, name)
			if len(m) == 0 {
				p.drop()
			}
		}
		place{at, below, drop}.follow(steps[1:], found)
	}
}

// leads says that the path leads to a place from the value. Of the many fields that are not
// served few are set: it allocates nothing.
func leads(value any, path string) bool {
	if path == "" {
		return true
	}
	step, rest, _ := strings.Cut(path, ".")
	name, elements := strings.CutSuffix(step, "[]")
	name, values := strings.CutSuffix(name, "{}")
	m, _ := value.(map[string]any)
	below, ok := m[name]
	switch {
	case !ok:
		return false
	case elements:
		list, _ := below.([]any)
		return slices.ContainsFunc(list, func(e any) bool { return leads(e, rest) })
	case values:
		named, _ := below.(map[string]any)
		for _, v := range named {
			if leads(v, rest) {
				return true
			}
		}
		return false
	}
	return leads(below, rest)
}
