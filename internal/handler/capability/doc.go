// Package capability says what a node offers to guests: the resources of its devices, and
// the labels about processors by which pods are placed.
//
// It computes; it touches nothing. Package handler/host puts what it says on the node.
package capability
