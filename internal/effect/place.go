package effect

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// place is where a VMI has a leaf, or has the object that the leaf is a field of.
// Its steps are names of fields, keys of maps and numbers of list elements.
type place []any

func (p place) String() string { return fmt.Sprint([]any(p)) }

// places are where the tree has the leaf. Objects on the way that are missing are
// made when it is set, but no elements of lists.
func places(tree map[string]any, path string) []place {
	all := []place{nil}
	for _, step := range strings.Split(path, ".") {
		name, list := strings.CutSuffix(step, "[]")
		name, named := strings.CutSuffix(name, "{}")
		var next []place
		for _, p := range all {
			p = append(slices.Clip(p), name)
			switch below := p.get(tree).(type) {
			case []any:
				for i := range below {
					next = append(next, append(slices.Clip(p), i))
				}
			case map[string]any:
				if !named {
					next = append(next, p)
					continue
				}
				for _, k := range slices.Sorted(maps.Keys(below)) {
					next = append(next, append(slices.Clip(p), k))
				}
			default:
				if !list && !named {
					next = append(next, p)
				}
			}
		}
		all = next
	}
	return all
}

// get is the value at the place, or nil.
func (p place) get(tree any) any {
	for _, step := range p {
		switch step := step.(type) {
		case string:
			m, _ := tree.(map[string]any)
			tree = m[step]
		case int:
			tree = tree.([]any)[step]
		}
	}
	return tree
}

// set is a copy of the tree with the value at the place; nil takes out what is
// there.
func (p place) set(tree map[string]any, value any) map[string]any {
	return p.edit(runtime.DeepCopyJSON(tree), value).(map[string]any)
}

func (p place) edit(tree, value any) any {
	if len(p) == 0 {
		return value
	}
	if i, ok := p[0].(int); ok {
		list := tree.([]any)
		list[i] = p[1:].edit(list[i], value)
		return list
	}
	m, _ := tree.(map[string]any)
	if m == nil {
		m = map[string]any{}
	}
	name := p[0].(string)
	if m[name] = p[1:].edit(m[name], value); m[name] == nil {
		delete(m, name)
	}
	return m
}
