package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

func TestTheDigestIsOfTheFieldsOfAllStatuses(t *testing.T) {
	t.Parallel()
	const one = `
metadata: {annotations: {}}
spec:
  names: {kind: VirtualMachineInstance}
  versions:
  - schema:
      openAPIV3Schema:
        properties:
          spec: {properties: {a: {type: string}}}
          status:
            properties:
              conditions: {type: array, items: {properties: {type: {type: string}}}}
              sizes: {additionalProperties: {properties: {size: {type: string}}}}
`
	digest := func(change func(status node)) string {
		t.Helper()
		d := &definition{}
		require.NoError(t, yaml.Unmarshal([]byte(one), &d.root))
		change(d.schema().child("properties"))
		sum := digestOfStatuses([]*definition{d})
		annotateStatuses([]*definition{d}, sum)
		require.Equal(t, sum, d.root.child("metadata").child("annotations")["podvisor.io/status-fields"])
		return sum
	}
	field := func(s node, path ...string) node {
		for _, p := range path {
			s = s.child(p)
		}
		return s
	}
	was := digest(func(node) {})
	for name, tt := range map[string]struct {
		change func(node)
		same   bool
	}{
		"nothing":                      {func(node) {}, true},
		"what a field means":           {func(s node) { s.child("status")["description"] = "other" }, true},
		"a field of the spec":          {func(s node) { field(s, "spec", "properties")["b"] = node{"type": "string"} }, true},
		"a field more":                 {func(s node) { field(s, "status", "properties")["b"] = node{"type": "string"} }, false},
		"a field more in each element": {func(s node) { field(s, "status", "properties", "conditions", "items", "properties")["b"] = node{} }, false},
		"a field more in each value": {func(s node) {
			field(s, "status", "properties", "sizes", "additionalProperties", "properties")["b"] = node{}
		}, false},
		"a field less": {func(s node) { delete(field(s, "status", "properties"), "sizes") }, false},
	} {
		require.Equal(t, tt.same, digest(tt.change) == was, name)
	}
}
