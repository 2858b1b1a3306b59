package admission

import (
	"reflect"

	"github.com/podvisor/podvisor/vmi/served"
)

// fill adds to the raw object what is in done and not in v, except for the fields
// that are not served: the API server would store them and drop them whenever the
// object is read, so that the next write of what was read would be a change.
//
// What was written stays as it was written, including the notation of quantities.
// That includes lists as a whole: an applier that applies the same manifest again
// replaces every list that is in it, and elements that were added would be lost.
// They could not be added again while no webhook answers, and the change would be
// refused.
func fill(raw map[string]any, v, done any, unserved served.Fields) error {
	from, err := treeOf(v)
	if err != nil {
		return err
	}
	to, err := treeOf(done)
	if err != nil {
		return err
	}
	unserved.Prune(from)
	unserved.Prune(to)
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
