package fake

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/podvisor/podvisor/vmi"
)

// merged are the lists whose elements are merged one by one when they are
// applied, by type and field, with the fields that tell elements apart; none if
// the elements are plain values. All other lists are replaced as a whole. The
// markers in package vmi say so too, which is tested.
var merged = map[string][]string{
	"Devices.Disks":                                        {"name"},
	"Devices.Interfaces":                                   {"name"},
	"VirtualMachineInstanceSpec.Networks":                  {"name"},
	"VirtualMachineInstanceSpec.Volumes":                   {"name"},
	"VirtualMachineInstanceSpec.ResourceClaims":            {"name"},
	"VirtualMachineInstanceSpec.TopologySpreadConstraints": {"topologyKey", "whenUnsatisfiable"},
	"VirtualMachineInstanceStatus.Conditions":              {"type"},
	"VirtualMachineStatus.Conditions":                      {"type"},
	"VirtualMachineInstanceReplicaSetStatus.Conditions":    {"type"},
	"VirtualMachineInstanceMigrationStatus.Conditions":     {"type"},
	"KubeVirtStatus.Conditions":                            {"type"},
	"AgentUsersPropagation.Users":                          {},
	"ObjectMeta.Finalizers":                                {},
	"ObjectMeta.OwnerReferences":                           {"uid"},
}

// schemas knows the schemas of all kinds.
var schemas = sync.OnceValue(func() *typed.Parser {
	p := &typed.Parser{Schema: schema.Schema{Types: []schema.TypeDef{wholeType()}}}
	b := builder{types: map[reflect.Type]string{}, out: &p.Schema}
	for _, t := range []reflect.Type{
		reflect.TypeFor[vmi.VirtualMachineInstance](), reflect.TypeFor[vmi.VirtualMachine](),
		reflect.TypeFor[vmi.VirtualMachineInstanceReplicaSet](), reflect.TypeFor[vmi.VirtualMachineInstanceMigration](),
		reflect.TypeFor[vmi.KubeVirt](),
	} {
		b.types[t] = t.Name()
		b.structure(t)
	}
	return p
})

// builder makes schemas of Go types.
type builder struct {
	// types are the names of the types that have a schema.
	types map[reflect.Type]string
	out   *schema.Schema
}

// whole is the name of the schema of what has no parts that can be owned one by
// one.
var whole = "whole"

func wholeType() schema.TypeDef {
	untyped := schema.Scalar("untyped")
	element := schema.TypeRef{NamedType: &whole}
	return schema.TypeDef{Name: whole, Atom: schema.Atom{
		Scalar: &untyped,
		List:   &schema.List{ElementType: element, ElementRelationship: schema.Atomic},
		Map:    &schema.Map{ElementType: element, ElementRelationship: schema.Atomic},
	}}
}

// ref refers to the schema of the type, and makes it if it is not there.
func (b builder) ref(t reflect.Type) schema.TypeRef {
	switch {
	case t.Kind() == reflect.Pointer:
		return b.ref(t.Elem())
	case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()), t == reflect.TypeFor[metav1.LabelSelector]():
	case t.Kind() == reflect.Map:
		return schema.TypeRef{Inlined: schema.Atom{Map: &schema.Map{ElementType: b.ref(t.Elem()), ElementRelationship: schema.Separable}}}
	case t.Kind() == reflect.Struct:
		name, ok := b.types[t]
		if !ok {
			name = t.String()
			b.types[t] = name
			b.structure(t)
		}
		return schema.TypeRef{NamedType: &name}
	}
	return schema.TypeRef{NamedType: &whole}
}

// structure adds the schema of a struct.
func (b builder) structure(t reflect.Type) {
	m := &schema.Map{Fields: b.fields(t)}
	b.out.Types = append(b.out.Types, schema.TypeDef{Name: b.types[t], Atom: schema.Atom{Map: m}})
}

func (b builder) fields(t reflect.Type) []schema.StructField {
	var out []schema.StructField
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			out = append(out, b.fields(f.Type)...)
		case f.IsExported() && name != "-":
			out = append(out, schema.StructField{Name: name, Type: b.field(t, f)})
		}
	}
	return out
}

func (b builder) field(t reflect.Type, f reflect.StructField) schema.TypeRef {
	keys, ok := merged[t.Name()+"."+f.Name]
	if !ok {
		return b.ref(f.Type)
	}
	l := &schema.List{ElementType: b.ref(f.Type.Elem()), ElementRelationship: schema.Associative, Keys: keys}
	return schema.TypeRef{Inlined: schema.Atom{List: l}}
}
