package jsontree

import (
	"bytes"
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
)

// Of is the struct that v points to as a tree of what JSON has. If it has a number above
// 2^63-1, all numbers are json.Number. The error is that of encoding it.
func Of(v any) (map[string]any, error) {
	if tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(v); err == nil {
		return tree, nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var tree map[string]any
	return tree, d.Decode(&tree)
}
