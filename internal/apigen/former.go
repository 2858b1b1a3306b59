package main

import (
	"slices"
	"strings"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/served"
)

// The API server says of a field that its schema does not have only that it is unknown. So
// the schema has those of before v1, each with a rule that refuses it and says what to write
// instead. The versions of before v1 are not served: the API server keeps all objects in
// memory once for each version that it serves, and decodes each change for each.

// refuse is a rule that no value fulfils.
func refuse(message string) []any {
	return []any{map[string]any{"rule": "false", "message": message}}
}

// addFormer adds what manifests of before v1 have to a definition.
func (p *pruner) addFormer(d *definition) {
	all := served.Formers(d.kind())
	for _, f := range all {
		if !slices.ContainsFunc(all, func(o served.Former) bool {
			return strings.HasPrefix(f.Path, o.Path+".") || strings.HasPrefix(f.Path, o.Path+"[")
		}) {
			p.addFormerField(d.schema(), f)
		}
	}
}

// addFormerField adds a property that no object may have.
func (p *pruner) addFormerField(s node, f served.Former) {
	steps := strings.Split(f.Path, ".")
	for _, step := range steps[:len(steps)-1] {
		name, _ := strings.CutSuffix(step, "[]")
		s, _ = s.child("properties").child(name).element()
	}
	name := steps[len(steps)-1]
	if properties := s.child("properties"); properties == nil || properties[name] != nil {
		p.fault("the field %s of before v1 has no place in the schema", f.Path)
		return
	}
	s.child("properties")[name] = formerSchema(f)
}

// formerSchema is the schema of a field of before v1, with anything below it.
func formerSchema(f served.Former) node {
	s := node{
		"description": "A field of before v1, which no object may have. Instead, " + f.Write + ".",
		"type":        f.Type, validations: refuse(f.Write + ": this is a field of before " + vmi.GroupVersion.String()),
	}
	switch f.Type {
	case "object":
		s["x-kubernetes-preserve-unknown-fields"] = true
	case "array":
		s["items"] = node{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
		s["maxItems"] = mostItems
		s["x-kubernetes-list-type"] = "atomic"
	case "integer":
		s["format"] = "int64"
	}
	return s
}
