package client

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/podvisor/podvisor/vmi"
)

// Configuration is the JSON that Apply sends for o, an object of the kind d:
// apiVersion, kind, what names the object, and what is set in it. The status and
// what only the API server writes (the creation time, the generation, the managed
// fields and so on) are left out.
//
// A field is set if it is not the zero value of its type. So a pointer that is
// not nil is set, whatever it points to: a *bool may be applied as false, and
// &vmi.InterfaceMasquerade{} as {}. A false, 0 or "" that is no pointer, and an
// empty list or map, is the same as one that is left out and is not sent; to apply
// such a value, send JSON by Patch with types.ApplyPatchType.
//
// Build the object from nothing. One that was read from the API server has all
// fields set, and the applier comes to own them all; its resourceVersion, if it
// is set, makes the write fail with a conflict after any other.
func Configuration[T Object, L runtime.Object](d vmi.DefinitionOf[T, L], o T) ([]byte, error) {
	if isNone(o) || o.GetName() == "" {
		return nil, fmt.Errorf("apply %s: the object has no name", d.Kind)
	}
	if err := writable(d.Kind, o); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s/%s: %w", d.Kind, o.GetNamespace(), o.GetName(), err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("decode %s %s/%s: %w", d.Kind, o.GetNamespace(), o.GetName(), err)
	}
	prune(reflect.ValueOf(o).Elem(), out)
	delete(out, "status")
	if m, ok := out["metadata"].(map[string]any); ok {
		for _, f := range []string{"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generateName", "generation", "managedFields", "selfLink"} {
			delete(m, f)
		}
	}
	out["apiVersion"], out["kind"] = d.GroupVersion().String(), d.Kind
	return json.Marshal(out)
}

// prune removes from the encoding out of v what is not set in v. The encoder
// leaves most of that out already, but not a struct that is no pointer and not
// fields that are required.
func prune(v reflect.Value, out any) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			prune(v.Elem(), out)
		}
	case reflect.Slice:
		l, _ := out.([]any)
		for i := range l {
			prune(v.Index(i), l[i])
		}
	case reflect.Struct:
		m, _ := out.(map[string]any)
		for i := range v.NumField() {
			if m != nil && v.Type().Field(i).IsExported() {
				pruneField(v.Field(i), v.Type().Field(i), m)
			}
		}
	}
}

func pruneField(v reflect.Value, f reflect.StructField, out map[string]any) {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	switch _, there := out[name]; {
	case name == "" && f.Anonymous:
		prune(v, out)
	case !there:
	case v.IsZero(), isEmpty(v):
		delete(out, name)
	default:
		prune(v, out[name])
		if m, ok := out[name].(map[string]any); ok && len(m) == 0 && v.Kind() == reflect.Struct {
			delete(out, name)
		}
	}
}

func isEmpty(v reflect.Value) bool {
	return (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
}
