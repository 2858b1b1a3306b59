// Package kinds is the table of all kinds: it joins the definition of each (package
// vmi) with its defaults (vmi/defaults), its validation (vmi/validate) and what of
// it is served (vmi/served).
//
// [All] returns the table, [Find] one row of it. Whatever treats all kinds alike
// ranges over it: admission, the check of manifests, the API server for tests. To
// add a kind, write its type, generate its definition (make generate) and add its
// line to the table; a test fails if the line is missing.
//
// The package computes; it touches nothing. Clients and informers need only the
// definition, and do not link this package.
//
// Trap: the functions of a row take objects of its own Go type and panic for any
// other.
package kinds
