// Package decode reads objects of the API from JSON, also those that the Go type of their
// kind cannot hold.
//
// An API server stores what the schema of the kind allows, which may be more than the Go
// type can hold. Another schema may have been in force, or another version may have
// written the object. [Into] decodes such an object as far as it can be acted on: the
// metadata, and of the status what can be decoded. It returns a vmi.UnreadableError, which
// names each field that cannot be decoded, and marks the object, so that vmi.Unreadable
// returns the same later.
//
// A quantity cannot be decoded either if calculating with it would take noticeable time,
// because its text is so long or its exponent so large.
//
// The clients of package vmi/client decode by it. The package computes; it touches
// nothing.
//
// Trap: whatever of the spec could be decoded is left out too. A part of a spec is not
// what its author described.
package decode
