// Package jsonpatch has the operations of a JSON patch (RFC 6902).
//
// It computes; it touches nothing.
package jsonpatch

import (
	"encoding/json"
	"strings"
)

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

// Add is the operation that adds the value at the path, or puts it in place of what is there.
func Add(path string, value any) Operation { return Operation{"add", path, value} }

// Replace is the operation that puts the value in place of what must be at the path.
func Replace(path string, value any) Operation { return Operation{"replace", path, value} }

// Test is the operation that fails the patch unless the value is at the path.
func Test(path string, value any) Operation { return Operation{"test", path, value} }

// Remove is the operation that takes away what must be at the path.
func Remove(path string) Operation { return Operation{Op: "remove", Path: path} }

// Escape is a key of an object as an element of a path.
func Escape(key string) string { return escaped.Replace(key) }

var escaped = strings.NewReplacer("~", "~0", "/", "~1")
