package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/served"
)

// The API server says of a field that its schema does not have only that it is unknown,
// and of a version that it does not serve even less. So the schema has those of before v1,
// each with a rule that refuses it and says what to write instead.

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
	spec := d.root.child("spec")
	if spec["group"] != vmi.GroupName {
		return
	}
	versions := spec["versions"].([]any)
	now := object(versions[0])
	for _, name := range served.FormerVersions() {
		write := served.FormerVersion(vmi.GroupName + "/" + name)
		v := node{
			"name": name, "served": true, "storage": false, "deprecated": true,
			"deprecationWarning": vmi.GroupName + "/" + name + " is read and not written: " + write,
			"schema": node{"openAPIV3Schema": node{
				"description": "A version of before v1, in which nothing can be written. Instead, " + write + ".",
				"type":        "object", "x-kubernetes-preserve-unknown-fields": true,
				validations: refuse("apiVersion: " + vmi.GroupName + "/" + name + " cannot be written any more: " + write),
			}},
		}
		if s := now["subresources"]; s != nil {
			v["subresources"] = maps.Clone(object(s))
		}
		versions = append(versions, v)
	}
	spec["versions"] = versions
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
