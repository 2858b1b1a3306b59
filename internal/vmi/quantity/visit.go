package quantity

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// visit calls found with each quantity in the value until it returns false, and
// says whether it never did.
func visit(at *field.Path, v reflect.Value, found func(*field.Path, resource.Quantity) bool) bool {
	if !holds(v.Type()) {
		return true
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return v.IsNil() || visit(at, v.Elem(), found)
	case reflect.Struct:
		if q, ok := v.Interface().(resource.Quantity); ok {
			return found(at, q)
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.IsExported() && holds(f.Type) && !visit(below(at, f), v.Field(i), found) {
				return false
			}
		}
	case reflect.Map:
		if !compound(v.Type().Elem()) {
			return true
		}
		for _, k := range slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }) {
			if !visit(at.Child(k.String()), v.MapIndex(k), found) {
				return false
			}
		}
	case reflect.Slice:
		for i := 0; i < v.Len() && compound(v.Type().Elem()); i++ {
			if !visit(at.Index(i), v.Index(i), found) {
				return false
			}
		}
	}
	return true
}

// known are the types of which it is known whether values of them can have a quantity.
var known sync.Map

// holds says that values of the type can have a quantity: few can, and most of what is in
// an object is passed over with its paths.
func holds(t reflect.Type) bool {
	if yes, ok := known.Load(t); ok {
		return yes.(bool)
	}
	yes := leadsTo(t, map[reflect.Type]bool{})
	known.Store(t, yes)
	return yes
}

// leadsTo is holds for a type that is reached by way of the others.
func leadsTo(t reflect.Type, by map[reflect.Type]bool) bool {
	if t == reflect.TypeFor[resource.Quantity]() {
		return true
	}
	if by[t] {
		return false
	}
	by[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Map, reflect.Slice:
		return leadsTo(t.Elem(), by)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && leadsTo(f.Type, by) {
				return true
			}
		}
	}
	return false
}

// compound says that values of the type have parts.
func compound(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct, reflect.Map, reflect.Slice, reflect.Pointer, reflect.Interface:
		return true
	}
	return false
}

// below is the path of a field of the struct at a path: the same if it is inlined.
func below(at *field.Path, f reflect.StructField) *field.Path {
	if name := nameOf(f); name != "" {
		return at.Child(name)
	}
	return at
}

// nameOf is the name of a field in JSON, or empty if it is inlined.
func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" && !f.Anonymous {
		return f.Name
	}
	return name
}
