package admission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	decoder "github.com/podvisor/podvisor/vmi/decode"
	"github.com/podvisor/podvisor/vmi/kinds"
)

// complete returns the object, which is created or follows before, with what was
// left out, or the error of reading it. Faults are those of an object that is created, and
// the changes of a spec that cannot be changed. written is the tree of the object. It is
// not changed, and shares with done what is the same. A spec that is another is its JSON.
func complete(k kinds.Kind, c kinds.Cluster, object, before []byte, written map[string]any) (v vmi.Object, done map[string]any, faults field.ErrorList, err error) {
	v, old, err := decode(k, object, before)
	if err != nil {
		return nil, nil, nil, err
	}
	if k.FixedSpec && old != nil {
		done = written
		faults, err = unchanged(k, c, old, v)
		if err == nil && len(faults) == 0 {
			done, err = restored(written, before)
		}
		return v, done, faults, err
	}
	if !k.Open {
		return v, written, nil, nil
	}
	whole := k.Complete(v, c)
	if len(before) == 0 {
		if faults = k.Create(whole, c); len(faults) > 0 {
			return v, written, faults, nil
		}
	}
	if is := statusOf(v); k.Status && is.IsValid() {
		statusOf(whole).Set(is) // with a spec, no status is stored
	}
	done, decoded, err := k.Unserved().Fill(written, v, whole)
	if err != nil {
		return v, written, nil, err
	}
	if reflect.DeepEqual(done["spec"], written["spec"]) {
		return v, done, nil, nil
	}
	// A default that depends on a list that was written, and is not changed, may
	// change the meaning: a network without the interface that belongs to it.
	spec, err := json.Marshal(done["spec"])
	if err != nil {
		return nil, nil, nil, err
	}
	filled, ok := decoded.(vmi.Object)
	if !ok {
		if filled, err = withSpec(v, spec); err != nil {
			return nil, nil, nil, err
		}
	}
	done = maps.Clone(done)
	if done["spec"] = json.RawMessage(spec); !k.CompletesTo(filled, whole, c) {
		done["spec"] = written["spec"]
	}
	return v, done, nil, nil
}

// withSpec is the object with another spec, and shares the rest with it.
func withSpec(o vmi.Object, text []byte) (vmi.Object, error) {
	is := reflect.New(reflect.TypeOf(o).Elem())
	is.Elem().Set(reflect.ValueOf(o).Elem())
	spec := is.Elem().FieldByName("Spec")
	spec.SetZero()
	return is.Interface().(vmi.Object), json.Unmarshal(text, spec.Addr().Interface())
}

// check returns the object, which is created or follows before, and what is wrong with it,
// or the error of reading it.
func check(k kinds.Kind, c kinds.Cluster, object, before []byte) (vmi.Object, field.ErrorList, error) {
	v, old, err := decode(k, object, before)
	if err != nil {
		return nil, nil, err
	}
	if old != nil {
		return v, k.Update(k.Complete(old, c), k.Complete(v, c), c), nil
	}
	return v, k.Create(k.Complete(v, c), c), nil
}

// decode reads an object and the one before, which is nil if there was none, or if it
// cannot be decoded: what corrects it is judged as an object that is created. The
// status of an object that is created is left out: it is not stored. So is who manages
// which fields, which is often longer than the spec, and nothing here depends on.
func decode(k kinds.Kind, object, before []byte) (v, old vmi.Object, err error) {
	v = k.New()
	if err := decoder.Into(object, v); err != nil {
		return nil, nil, err
	}
	v.SetManagedFields(nil)
	if len(before) == 0 {
		if s := statusOf(v); k.Status && s.IsValid() {
			s.SetZero()
		}
		return v, nil, nil
	}
	old = k.New()
	switch err := decoder.Into(before, old); {
	case errors.Is(err, vmi.ErrUnreadable):
		return v, nil, nil
	case err != nil:
		return nil, nil, err
	}
	old.SetManagedFields(nil)
	return v, old, nil
}

// statusOf is the status of the object. It is not valid if the object has none.
func statusOf(v vmi.Object) reflect.Value { return reflect.ValueOf(v).Elem().FieldByName("Status") }

// restored is the object with the spec that it had before.
func restored(written map[string]any, before []byte) (map[string]any, error) {
	old, err := tree(before)
	if err != nil {
		return nil, err
	}
	done := maps.Clone(written)
	done["spec"] = old["spec"]
	return done, nil
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
		return nil, fmt.Errorf("decode the object: %w", err)
	}
	if t == nil {
		return nil, fmt.Errorf("decode the object: it is null")
	}
	return t, nil
}
