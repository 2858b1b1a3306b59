package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

// kinds are what admission does for the objects of each kind. Others pass.
var kinds = map[schema.GroupKind]kind{
	vmi.Kind.GroupKind(): of(completeInstance, sameInstance, checkInstance),
}

// kind is what admission does for the objects of one kind, as JSON. The object
// before is empty if there was none.
type kind struct {
	// complete returns the object with what was left out, or what cannot be read
	// in it.
	complete func(c config.Config, object, before []byte) (map[string]any, error)
	// check returns what is wrong with the object, or what cannot be read in it.
	check func(c config.Config, object, before []byte) (field.ErrorList, error)
}

// of makes a kind of functions over its type, given the configuration of the
// cluster. The old object is nil when an object is created.
//
// complete returns a completed copy. same says that the specs of two objects mean
// the same; it is nil for kinds whose spec may be changed. check returns what is
// wrong with an object that was completed.
func of[T any](complete func(config.Config, *T) *T, same func(c config.Config, a, b *T) bool, check func(c config.Config, v, old *T) field.ErrorList) kind {
	return kind{
		complete: func(c config.Config, object, before []byte) (map[string]any, error) {
			v, old, err := decode[T](object, before)
			if err != nil {
				return nil, err
			}
			raw, err := tree(object)
			if err != nil {
				return nil, err
			}
			if same == nil || old == nil {
				err = completed(raw, v, complete(c, v))
			} else if same(c, v, old) {
				err = restore(raw, before)
			}
			return raw, err
		},
		check: func(c config.Config, object, before []byte) (field.ErrorList, error) {
			v, old, err := decode[T](object, before)
			if err != nil {
				return nil, err
			}
			return check(c, complete(c, v), old), nil
		},
	}
}

func decode[T any](object, before []byte) (v, old *T, err error) {
	if err := json.Unmarshal(object, &v); err != nil {
		return nil, nil, err
	}
	if len(before) > 0 {
		err = json.Unmarshal(before, &old)
	}
	return v, old, err
}

// completed puts what is in done, and not in v, into the raw object.
func completed(raw map[string]any, v, done any) error {
	from, err := treeOf(v)
	if err != nil {
		return err
	}
	to, err := treeOf(done)
	if err != nil {
		return err
	}
	merge(raw, from, to)
	return nil
}

// restore makes the raw object's spec the one that it was before.
func restore(raw map[string]any, before []byte) error {
	old, err := tree(before)
	if err != nil {
		return err
	}
	raw["spec"] = old["spec"]
	return nil
}

// merge puts what changed between from and to into raw, and leaves everything
// else in it as it is, down to the spelling of quantities.
func merge(raw, from, to map[string]any) {
	for k := range from {
		if _, ok := to[k]; !ok {
			delete(raw, k)
		}
	}
	for k, after := range to {
		if before, ok := from[k]; !ok || !reflect.DeepEqual(before, after) {
			raw[k] = merged(raw[k], from[k], after)
		}
	}
}

// merged is raw with what changed between from and to.
func merged(raw, from, to any) any {
	switch to := to.(type) {
	case map[string]any:
		r, ok := raw.(map[string]any)
		f, _ := from.(map[string]any)
		if !ok {
			return to
		}
		merge(r, f, to)
		return r
	case []any:
		r, _ := raw.([]any)
		f, _ := from.([]any)
		if len(r) != len(f) || len(f) > len(to) {
			return to
		}
		out := append([]any{}, to...)
		for i := range f {
			out[i] = r[i]
			if !reflect.DeepEqual(f[i], to[i]) {
				out[i] = merged(r[i], f[i], to[i])
			}
		}
		return out
	}
	return to
}

// treeOf is the value as JSON, decoded.
func treeOf(v any) (map[string]any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return tree(data)
}

// tree decodes JSON and keeps the digits of numbers.
func tree(data []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var t map[string]any
	if err := d.Decode(&t); err != nil {
		return nil, fmt.Errorf("read the object: %w", err)
	}
	if t == nil {
		return nil, fmt.Errorf("read the object: it is null")
	}
	return t, nil
}
