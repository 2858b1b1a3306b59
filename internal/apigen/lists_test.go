package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryListAndMapHasALimit(t *testing.T) {
	t.Parallel()
	array := func(items map[string]any) map[string]any { return map[string]any{"type": "array", "items": items} }
	own := array(map[string]any{"type": "string"})
	own["maxItems"] = 4
	s := node{"properties": map[string]any{
		"spec": map[string]any{"properties": map[string]any{
			"own": own, "of": array(map[string]any{"properties": map[string]any{"inner": array(map[string]any{"type": "string"})}}),
			"map": map[string]any{"additionalProperties": array(map[string]any{"type": "string"})}, "leaf": map[string]any{"type": "string"},
		}},
		"status": map[string]any{"properties": map[string]any{"list": array(map[string]any{"type": "string"})}},
	}}
	limitLists(s)
	require.Equal(t, `fields: map[string]*list{
"spec": {fields: map[string]*list{
"map": {max: 256, below: &list{max: 1024}},
"of": {max: 1024, below: &list{fields: map[string]*list{
"inner": {max: 1024},
}}},
"own": {max: 4},
}},
"status": {fields: map[string]*list{
"list": {max: 1024},
}},
}`, limitsBelow(s))
}
