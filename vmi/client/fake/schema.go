package fake

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/podvisor/podvisor/vmi"
)

// listKeys are the lists in the metadata of every kind whose elements are merged
// one by one when they are applied. Those of a kind are in its definition.
var listKeys = map[string][]string{
	"metadata.finalizers":      {},
	"metadata.ownerReferences": {"uid"},
}

// schemaOf is the schema of the kind.
func schemaOf(d vmi.Definition) typed.ParseableType {
	p := &typed.Parser{Schema: schema.Schema{Types: []schema.TypeDef{wholeType()}}}
	b := builder{types: map[reflect.Type]string{}, keys: maps.Clone(listKeys), out: &p.Schema}
	maps.Copy(b.keys, d.ListKeys)
	t := reflect.TypeOf(d.New()).Elem()
	b.types[t] = d.Kind
	b.structure("", t)
	return p.Type(d.Kind)
}

// builder makes schemas of Go types. A type has one schema, wherever it is used:
// which of its lists are merged is said by markers of the type.
type builder struct {
	// types are the names of the types that have a schema.
	types map[reflect.Type]string
	// keys are the lists that are merged, by their paths.
	keys map[string][]string
	out  *schema.Schema
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

// ref refers to the schema of the type, and makes it if it is not there. The path
// is where the type is first used.
func (b builder) ref(path string, t reflect.Type) schema.TypeRef {
	switch {
	case t.Kind() == reflect.Pointer:
		return b.ref(path, t.Elem())
	case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()), t == reflect.TypeFor[metav1.LabelSelector]():
	case t.Kind() == reflect.Map:
		return schema.TypeRef{Inlined: schema.Atom{Map: &schema.Map{ElementType: b.ref(path+"{}", t.Elem()), ElementRelationship: schema.Separable}}}
	case t.Kind() == reflect.Struct:
		name, ok := b.types[t]
		if !ok {
			name = t.PkgPath() + "." + t.Name()
			b.types[t] = name
			b.structure(path, t)
		}
		return schema.TypeRef{NamedType: &name}
	}
	return schema.TypeRef{NamedType: &whole}
}

// structure adds the schema of a struct.
func (b builder) structure(path string, t reflect.Type) {
	m := &schema.Map{Fields: b.fields(path, t)}
	b.out.Types = append(b.out.Types, schema.TypeDef{Name: b.types[t], Atom: schema.Atom{Map: m}})
}

func (b builder) fields(path string, t reflect.Type) []schema.StructField {
	var out []schema.StructField
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			out = append(out, b.fields(path, f.Type)...)
		case f.IsExported() && name != "-":
			out = append(out, schema.StructField{Name: name, Type: b.field(strings.TrimPrefix(path+"."+name, "."), f.Type)})
		}
	}
	return out
}

func (b builder) field(path string, t reflect.Type) schema.TypeRef {
	keys, ok := b.keys[path]
	if !ok {
		return b.ref(path, t)
	}
	l := &schema.List{ElementType: b.ref(path+"[]", t.Elem()), ElementRelationship: schema.Associative, Keys: keys}
	return schema.TypeRef{Inlined: schema.Atom{List: l}}
}
