package admission

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/kinds"
)

// maxChanges is how many changed fields are named.
const maxChanges = 20

// unchanged returns the fields of a spec that cannot be changed in which v, which is
// to replace old, has another meaning. What v leaves open is as it is in old, also
// if the defaults of the cluster are others now. The values are not shown: they may
// be secret.
func unchanged(k kinds.Kind, c kinds.Cluster, old, v vmi.Object) (field.ErrorList, error) {
	v = k.Keep(old, v)
	if k.SameSpec(old, v, c) {
		return nil, nil
	}
	var trees [4]any
	for i, o := range []vmi.Object{k.Complete(old, c), k.Complete(v, c), old, v} {
		t, err := treeOf(o)
		if err != nil {
			return nil, err
		}
		trees[i] = t["spec"]
	}
	at := field.NewPath("spec")
	paths := changes(at, trees[0], trees[1], trees[2:])
	if len(paths) == 0 {
		paths = []*field.Path{at}
	}
	var faults field.ErrorList
	for _, p := range paths[:min(len(paths), maxChanges)] {
		faults = append(faults, field.Forbidden(p, fmt.Sprintf("the spec of a %s cannot be changed; delete it and create another", k.Kind)))
	}
	return faults, nil
}

// changes are the paths of the values in which a and b differ and that are written
// in one of the others: a default that follows from another value is no change of
// its own.
func changes(at *field.Path, a, b any, written []any) []*field.Path {
	if reflect.DeepEqual(a, b) || !slices.ContainsFunc(written, func(w any) bool { return w != nil }) {
		return nil
	}
	var out []*field.Path
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok {
			break
		}
		all := maps.Clone(a)
		maps.Copy(all, b)
		for _, k := range slices.Sorted(maps.Keys(all)) {
			out = append(out, changes(at.Child(k), a[k], b[k], child(written, k))...)
		}
		return out
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			break
		}
		for i := range a {
			out = append(out, changes(at.Index(i), a[i], b[i], element(written, i))...)
		}
		return out
	}
	return []*field.Path{at}
}

// child are the values with the key in those that are maps.
func child(all []any, key string) []any {
	var out []any
	for _, o := range all {
		if m, ok := o.(map[string]any); ok {
			out = append(out, m[key])
		}
	}
	return out
}

// element are the elements with the index in those that are lists.
func element(all []any, i int) []any {
	var out []any
	for _, o := range all {
		if l, ok := o.([]any); ok && i < len(l) {
			out = append(out, l[i])
		}
	}
	return out
}
