package quantity

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// visit calls found with each quantity in the value until it returns false, and
// says whether it never did.
func visit(at *field.Path, v reflect.Value, found func(*field.Path, resource.Quantity) bool) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return v.IsNil() || visit(at, v.Elem(), found)
	case reflect.Struct:
		if q, ok := v.Interface().(resource.Quantity); ok {
			return found(at, q)
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.IsExported() && !visit(below(at, f), v.Field(i), found) {
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
