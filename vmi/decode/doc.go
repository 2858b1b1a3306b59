// Package decode reads objects of the API from JSON, also those that the Go type of
// their kind cannot hold.
//
// An API server stores what the schema of the kind allows, which may be more than
// the Go type can hold: an object that was stored while another schema was in force,
// or that another version wrote. [Into] decodes such an object as far as it can be
// acted on: the metadata, and of the status what can be decoded. It returns a
// vmi.UnreadableError, which names each field that cannot be decoded, and marks the
// object, so that vmi.Unreadable returns the same later.
//
// A quantity counts as one that cannot be decoded if its text is so long, or its
// exponent so large, that calculating with it would take noticeable time.
//
// The clients of package vmi/client decode by it. The package computes; it touches
// nothing.
//
// Trap: whatever of the spec could be decoded is left out too. A part of a spec is
// not what its author described.
package decode
