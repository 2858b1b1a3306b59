package validate

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/internal/vmi/jsontree"
	"github.com/podvisor/podvisor/internal/vmi/schema"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/served"
)

// judged are the faults, and those that the schema of the object's kind has beside them.
// A field of which something is said already is not named again.
func judged(kind string, o vmi.Object, lim Limits, l field.ErrorList) field.ErrorList {
	if len(l) == 0 && lim.SchemaFollows {
		return nil
	}
	return append(l, Schema(kind, treeOfSpec(o), l)...)
}

// Schema returns what the schema of a kind refuses in an object, or nothing: see
// [schema.Faults]. Fields of which the known faults say something are left out, and so
// are fields and values that are not served yet, which package served names with the
// reason. The object is not changed.
func Schema(kind string, object map[string]any, known field.ErrorList) field.ErrorList {
	l := besides(known, schema.Faults(kind, schema.Completed(kind, object)))
	if len(l) == 0 {
		return nil
	}
	later := slices.DeleteFunc(served.Unserved(kind).In(object), func(f served.Field) bool { return f.Refused })
	return besides(later.Faults(), l)
}

// treeOfSpec is the object as a tree with nothing but its spec.
func treeOfSpec(o vmi.Object) map[string]any {
	spec := reflect.Indirect(reflect.ValueOf(o)).FieldByName("Spec")
	if !spec.IsValid() {
		return map[string]any{"spec": nil}
	}
	t, err := jsontree.Of(spec.Addr().Interface())
	if err != nil {
		panic(fmt.Sprintf("%T is not JSON: %v", o, err)) // its types are made of what JSON has
	}
	return map[string]any{"spec": t}
}

// besides are the faults of more in fields of which first says nothing: neither of the
// field, nor of what is around it or below it.
func besides(first, more field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(slices.Clone(more), func(e *field.Error) bool {
		return slices.ContainsFunc(first, func(o *field.Error) bool {
			path := pathOf(o)
			return path != "" && (Within(e.Field, path) || Within(path, e.Field))
		})
	})
}

// pathOf is the path of the field that a fault is about. A message begins with it where
// KubeVirt's name of the field is another: see as.
func pathOf(e *field.Error) string {
	if path, _, ok := strings.Cut(e.Detail, ": "); ok && strings.HasPrefix(path, "spec.") && !strings.Contains(path, " ") {
		return path
	}
	return e.Field
}

// Within says that a path is the same as another, or below it.
func Within(path, other string) bool {
	rest, ok := strings.CutPrefix(path, other)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Follows says that a fault at a path may be there only because something is wrong at
// another path: it is the same, around it or below it. Nothing follows from a fault
// without a path, and a fault without one follows from nothing.
func Follows(path, other string) bool {
	return path != "" && other != "" && (Within(path, other) || Within(other, path))
}
