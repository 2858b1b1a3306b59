package served

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"

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
	filled, _, err := l.Fill(raw, v, done)
	return filled, err
}

// Fill is Filled, and returns also what the result decodes to, or nil if only a decoder
// knows it. That shares with v and done what is the same: it is not to be changed.
func (l Fields) Fill(raw map[string]any, v, done any) (filled map[string]any, decoded any, err error) {
	is := copyOf(reflect.ValueOf(v))
	from, to, known, err := changed(raw, reflect.ValueOf(v), reflect.ValueOf(done), is)
	if err != nil {
		return nil, nil, err
	}
	l.Prune(from)
	known = !l.prune(to) && known
	filled = added(raw, from, to)
	// Finalizers are a set: one more changes none of the others.
	metadata, _ := filled["metadata"].(map[string]any)
	if o, ok := done.(withFinalizers); ok && metadata != nil && len(o.GetFinalizers()) > 0 {
		all := make([]any, 0, len(o.GetFinalizers()))
		for _, f := range o.GetFinalizers() {
			all = append(all, f)
		}
		filled, metadata = maps.Clone(filled), maps.Clone(metadata)
		filled["metadata"], metadata["finalizers"] = metadata, all
		is.Interface().(withFinalizers).SetFinalizers(o.GetFinalizers())
	}
	if !known {
		return filled, nil, nil
	}
	return filled, is.Interface(), nil
}

// withFinalizers is an object with metadata.
type withFinalizers interface {
	GetFinalizers() []string
	SetFinalizers([]string)
}

// copyOf points to a copy of the struct that is pointed to.
func copyOf(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type().Elem())
	c.Elem().Set(v.Elem())
	return c
}

// changed are the trees of what v and done point to, two structs of a type, without what
// adds nothing to what was written: what is equal in both, and values that were written and
// are no objects. Most of an object is one of these, and a tree of all of it costs more. What
// is added is set in filled, a copy of v, unless known is false.
func changed(written map[string]any, v, done, filled reflect.Value) (from, to map[string]any, known bool, err error) {
	t := v.Elem().Type()
	from, to, known = map[string]any{}, map[string]any{}, true
	before, after := reflect.New(t), reflect.New(t) // with what is made a tree as a whole
	var whole []string
	for i := range t.NumField() {
		is, becomes := v.Elem().Field(i), done.Elem().Field(i)
		if reflect.DeepEqual(is.Addr().Interface(), becomes.Addr().Interface()) {
			continue
		}
		name, named := nameOf(t.Field(i))
		if !named {
			from, to, err = trees(v, done)
			return from, to, false, err
		}
		switch below := written[name].(type) {
		case nil:
			filled.Elem().Field(i).Set(becomes)
		case map[string]any:
			p, q := structAt(is), structAt(becomes)
			if !p.IsValid() || !q.IsValid() {
				known = false
				break
			}
			part := copyOf(p)
			a, b, ok, err := changed(below, p, q, part)
			if err != nil {
				return nil, nil, false, err
			}
			from[name], to[name], known = a, b, known && ok
			if is.Kind() != reflect.Pointer {
				part = part.Elem()
			}
			filled.Elem().Field(i).Set(part)
			continue
		default:
			continue
		}
		whole = append(whole, name)
		before.Elem().Field(i).Set(is)
		after.Elem().Field(i).Set(becomes)
	}
	if len(whole) == 0 {
		return from, to, known, nil
	}
	a, b, err := trees(before, after)
	for _, name := range whole {
		if value, ok := a[name]; ok {
			from[name] = value
		}
		if value, ok := b[name]; ok {
			to[name] = value
		}
	}
	return from, to, known, err
}

// trees are the trees of two structs, which are pointed to.
func trees(v, done reflect.Value) (from, to map[string]any, err error) {
	if from, err = jsontree.Of(v.Interface()); err != nil {
		return nil, nil, err
	}
	to, err = jsontree.Of(done.Interface())
	return from, to, err
}

// nameOf is the name of the field in JSON. It is false if the field has none of its own.
func nameOf(f reflect.StructField) (string, bool) {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name, name != "" && name != "-" && f.IsExported()
}

// structAt points to the struct that the value is or points to, if its fields are those of
// its JSON. Otherwise the result is not valid.
func structAt(v reflect.Value) reflect.Value {
	if v.Kind() != reflect.Pointer {
		v = v.Addr()
	}
	if v.IsNil() || v.Type().Elem().Kind() != reflect.Struct || v.Type().Implements(marshaler) {
		return reflect.Value{}
	}
	return v
}

var marshaler = reflect.TypeFor[json.Marshaler]()

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
