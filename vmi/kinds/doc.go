// Package kinds is the table of all kinds. It joins the definition of each (package vmi)
// with its defaults (vmi/defaults), its validation (vmi/validate) and what of it is served
// (vmi/served).
//
// [All] returns the table, [Find] one row of it. Whatever treats all kinds alike ranges
// over it: admission, the check of manifests, the API server for tests. What an
// installation needs to know of a kind is in its row too. From it, make generate writes
// the lists of definitions, rules and rights in the manifests (internal/kindgen).
//
// To add a kind, write its type and its validation, and generate its definition (make
// generate). Then add its row to the table and generate again. A test fails if the row is
// missing. A kind of a further API group has a package of its own below vmi, whose doc.go
// names the group. A kind that is reconciled has a package that decides and an entry in
// scheduler/controller too.
//
// The package computes; it touches nothing. Clients and informers need only the
// definition, and do not link this package.
//
// Trap: the functions of a row take objects of its own Go type and panic for any other.
package kinds
