// Package schema judges objects by the schemas that the API server has of their
// kinds: types, required fields, limits, patterns, lists without duplicates and the
// rules in CEL. It needs no API server and no cluster.
//
// [Faults] judges a tree, as JSON and YAML decode to, and [Completed] makes of a tree
// what the API server judges: it drops null and sets the defaults of the schema. What
// is not in a schema is no fault here: package vmi/served says what is not served.
//
// The schemas are those of manifests/crds without their descriptions, written by make
// generate. Of CEL the package evaluates what these rules use; a test fails for a rule
// with anything else. The package computes; it touches nothing.
//
// Trap: a typed object has zero values where its author wrote nothing. The API server
// sees the same if a Go program sends the object, and another object if kubectl does.
package schema
