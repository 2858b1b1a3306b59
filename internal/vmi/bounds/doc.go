// Package bounds says how large an object of the API may be before it is decoded.
//
// A decoded object takes many times the memory of its JSON: a list of a million
// empty elements is 3 MB of JSON and gigabytes of Go values. [Fault] reads the JSON
// once, allocates next to nothing, and stops at the first list or map that is longer than
// the schema of the kind allows, at the first string that is too long, and when the
// object has too many values, is too deep or too large as a whole. An object without
// a fault is cheap to decode and to validate.
//
// The limits of lists and maps are made by internal/apigen of the same markers as the schema.
// The package computes; it touches nothing.
//
// Trap: it does not judge text that is no JSON. The decoder does.
package bounds
