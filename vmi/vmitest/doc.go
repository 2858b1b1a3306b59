// Package vmitest builds VMIs, VMs, replica sets and nodes for tests and examples: name
// what matters, the rest is small and valid. [InstanceOf] makes the VMI of a VM, and
// [InPhase] sets what the components have written of it by then. A [Recorder] keeps the
// events of an operator.
//
// The objects are for package client/fake, which holds them as they are. docs/operator.md
// and docs/testing.md test operators with both.
//
// It computes; it touches nothing.
package vmitest
