package served

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// Fill adds to raw, an object as it was written, what is in done and not in v, except
// for the fields: the API server would store them and drop them whenever the object is
// read, so that the next write of what was read would be a change. v is raw decoded, and
// done is v complete.
//
// What was written stays as it was written, including the notation of quantities.
// That includes lists as a whole: an applier that applies the same manifest again
// replaces every list that is in it, and elements that were added would be lost.
// They could not be added again while no webhook answers, and the change would be
// refused.
func (l Fields) Fill(raw map[string]any, v, done any) error {
	from, err := digits(v)
	if err != nil {
		return err
	}
	to, err := digits(done)
	if err != nil {
		return err
	}
	l.Prune(from)
	l.Prune(to)
	add(raw, from, to)
	// Finalizers are a set: one more changes none of the others.
	is, _ := raw["metadata"].(map[string]any)
	if done, _ := to["metadata"].(map[string]any); is != nil && done["finalizers"] != nil {
		is["finalizers"] = done["finalizers"]
	}
	return nil
}

// digits is an object as JSON, decoded, with the digits of its numbers.
func digits(v any) (map[string]any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var t map[string]any
	return t, d.Decode(&t)
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
