// Package defaults completes what a user left out.
//
// [Instance] decides for a VMI, [VirtualMachine] and [ReplicaSet] for the kinds that make
// VMIs. They are the only place where a default is decided. They compute; they touch
// nothing, and they never change their input. Every component applies them to what it
// reads, so an object that was stored without defaults is treated in the same way
// everywhere.
//
// What differs from cluster to cluster is a [Profile]; its zero value is what KubeVirt
// does in a cluster that configures nothing. What is random or depends on the time is part
// of the profile too, so that the same arguments always give the same result.
//
// Traps: defaults depend on the architecture. Where VMIs of another architecture run,
// apply them with that of the node or the cluster, not with the zero value. Metadata and
// status are completed only while a VMI has no phase: later they belong to the
// controllers. The layout of the PCI bus is completed while it is Pending, too.
package defaults
