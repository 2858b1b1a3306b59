// Package jsonpatch has the operations of a JSON patch (RFC 6902).
//
// It computes; it touches nothing.
package jsonpatch

import "encoding/json"

// Operation is an operation of a JSON patch: add, replace, remove or test.
type Operation struct {
	Op, Path string
	Value    any
}

// MarshalJSON writes the value of all operations but remove: also of a test for null.
func (o Operation) MarshalJSON() ([]byte, error) {
	m := map[string]any{"op": o.Op, "path": o.Path}
	if o.Op != "remove" {
		m["value"] = o.Value
	}
	return json.Marshal(m)
}
