package served

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/internal/vmi/jsontree"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// Faults returns what the spec asks for and this build cannot do, each with its
// reason, or nothing. It is for programs that read a VMI without an API server in
// between, which refuses these fields: otherwise the VMI loses them.
//
// A field that only states what the defaults of p decide anyway is no fault, so v
// may have its defaults applied or not. p is the profile that they are applied
// with.
func Faults(v *vmi.VirtualMachineInstance, p defaults.Profile) field.ErrorList {
	all := unserved[vmi.VirtualMachineInstances.Kind]
	set := all.In(tree(&v.Spec))
	if len(set) == 0 {
		return nil
	}
	stripped := tree(&v.Spec)
	all.Prune(stripped)
	is, plain := all.values(tree(defaults.Spec(&v.Spec, p))), all.values(tree(defaults.Spec(specOf(stripped), p)))
	return slices.DeleteFunc(set, func(f Field) bool { return reflect.DeepEqual(is[f.Path], plain[f.Path]) }).Faults()
}

// Faults are the fields that [Fields.In] found in an object of any kind as faults
// of that object.
func (l Fields) Faults() field.ErrorList {
	var out field.ErrorList
	for _, f := range l {
		e := &field.Error{Type: field.ErrorTypeForbidden, Field: f.Path, BadValue: field.OmitValueType{}, Detail: f.state() + f.Why}
		if f.Value != "" {
			e.Type, e.BadValue = field.ErrorTypeNotSupported, f.Value
		}
		out = append(out, e)
	}
	return out
}

// values are the values of the fields by their paths in the object.
func (l Fields) values(object map[string]any) map[string]any {
	out := map[string]any{}
	for _, f := range l {
		place{value: object, drop: stay}.follow(f.steps(), func(p place) { out[p.path()] = p.value })
	}
	return out
}

// tree is an object with this spec and nothing else.
func tree(s *vmi.VirtualMachineInstanceSpec) map[string]any {
	t, err := jsontree.Of(s)
	must(err)
	return map[string]any{"spec": t}
}

// specOf is the spec of a tree.
func specOf(t map[string]any) *vmi.VirtualMachineInstanceSpec {
	var s vmi.VirtualMachineInstanceSpec
	b, err := json.Marshal(t["spec"])
	must(err)
	must(json.Unmarshal(b, &s))
	return &s
}

// must panics for an error: the types of a spec are made of what JSON has.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("a spec is not JSON: %v", err))
	}
}
