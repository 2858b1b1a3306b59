// Package revision makes what ControllerRevisions hold: JSON that never changes, and the copies
// of instance types and preferences that VMs use.
//
// virt-controller makes a copy, and admission compares the copy with the object that the VM
// names. So no revision that is made with the account of virt-controller has other content. The
// package computes; it touches nothing.
package revision
