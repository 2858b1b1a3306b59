// Package vmitest builds VMIs, VMs, replica sets and nodes for tests and examples: name what
// matters, the rest is small and valid. [InstanceOf] makes the VMI of a VM, [InPhase] what the
// components have written of it by then, and a [Recorder] keeps the events of an operator.
//
// The objects are for package client/fake, which holds them as they are. docs/testing.md
// tests an operator with both.
//
// It computes; it touches nothing.
package vmitest
