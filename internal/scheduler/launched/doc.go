// Package launched reads what a pod says of the VMI that it was made for: whose it is, in
// which role, by which build, and whether it has ended.
//
// What a pod says comes from scheduler/pod, which renders it. The package computes; it
// touches nothing.
//
// Trap: labels and annotations of a pod are evidence only where the API server takes them
// from virt-controller alone, as manifests/policies/launcher.yaml says.
package launched
