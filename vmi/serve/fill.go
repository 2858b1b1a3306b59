package serve

import (
	"reflect"
	"strings"
)

// fill adds to the raw object what is in done and not in v, but for the fields
// that are not served: the API server would store them and drop them whenever the
// object is read, so that the next write of what was read would be a change.
//
// What was written stays as it was written, down to the spelling of quantities.
// That goes for lists as a whole: who applies the same manifest again replaces
// every list that is in it, and what was added to one would be gone. Nobody could
// put it back while nobody answers here, and the change would be refused.
func fill(raw map[string]any, v, done any, unserved []string) error {
	from, err := treeOf(v)
	if err != nil {
		return err
	}
	to, err := treeOf(done)
	if err != nil {
		return err
	}
	for _, path := range unserved {
		drop(from, strings.Split(path, "."))
		drop(to, strings.Split(path, "."))
	}
	add(raw, from, to)
	// Finalizers are a set: one more changes none of the others.
	is, _ := raw["metadata"].(map[string]any)
	if done, _ := to["metadata"].(map[string]any); is != nil && done["finalizers"] != nil {
		is["finalizers"] = done["finalizers"]
	}
	return nil
}

// add puts into raw what is in to and not in from.
func add(raw, from, to map[string]any) {
	for k, after := range to {
		before := from[k]
		if reflect.DeepEqual(before, after) {
			continue
		}
		switch written := raw[k].(type) {
		case nil:
			raw[k] = after
		case map[string]any:
			f, _ := before.(map[string]any)
			if t, ok := after.(map[string]any); ok {
				add(written, f, t)
			}
		}
	}
}

// drop takes the field at the path out of the value, in each element of a list
// and each value of a map on the way, and with it every object that has nothing
// else.
func drop(v any, path []string) {
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	name, values := strings.CutSuffix(strings.TrimSuffix(path[0], "[]"), "{}")
	if len(path) == 1 {
		delete(m, name)
		return
	}
	switch below := m[name].(type) {
	case []any:
		for _, e := range below {
			drop(e, path[1:])
		}
	case map[string]any:
		if values {
			for _, e := range below {
				drop(e, path[1:])
			}
			return
		}
		before := len(below)
		drop(below, path[1:])
		if before > 0 && len(below) == 0 {
			delete(m, name)
		}
	}
}
