package served

import (
	"maps"
	"reflect"

	"github.com/podvisor/podvisor/internal/vmi/jsontree"
)

// Filled is raw, an object as it was written, with what is in done and not in v, except
// for the fields: the API server would store them and drop them whenever the object is
// read, so that the next write of what was read would be a change. v points to raw
// decoded, and done to v complete. raw is not changed, and shares with the result what is
// the same.
//
// What was written stays as it was written, including the notation of quantities.
// That includes lists as a whole: an applier that applies the same manifest again
// replaces every list that is in it, and elements that were added would be lost.
// They could not be added again while no webhook answers, and the change would be
// refused.
func (l Fields) Filled(raw map[string]any, v, done any) (map[string]any, error) {
	from, err := jsontree.Of(v)
	if err != nil {
		return nil, err
	}
	to, err := jsontree.Of(done)
	if err != nil {
		return nil, err
	}
	l.Prune(from)
	l.Prune(to)
	filled := added(raw, from, to)
	// Finalizers are a set: one more changes none of the others.
	is, _ := filled["metadata"].(map[string]any)
	if done, _ := to["metadata"].(map[string]any); is != nil && done["finalizers"] != nil {
		filled, is = maps.Clone(filled), maps.Clone(is)
		filled["metadata"], is["finalizers"] = is, done["finalizers"]
	}
	return filled, nil
}

// added is raw with what is in to and not in from.
func added(raw, from, to map[string]any) map[string]any {
	out := raw // copied with the first that is added
	copied := false
	for k, after := range to {
		before := from[k]
		if reflect.DeepEqual(before, after) {
			continue
		}
		switch written := raw[k].(type) {
		case nil:
		case map[string]any:
			t, ok := after.(map[string]any)
			if !ok {
				continue
			}
			f, _ := before.(map[string]any)
			after = added(written, f, t)
		default:
			continue
		}
		if !copied {
			out, copied = maps.Clone(raw), true
		}
		out[k] = after
	}
	return out
}
