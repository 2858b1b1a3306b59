// Package volume turns the volumes of an instance into what its pod and its domain need
// for them.
//
// A kind of volume has two halves in one file. One is what the pod needs, which [Pod] joins
// for all volumes. The other is what QEMU opens, which [Resolve] returns for all disks. Both
// are computed from facts that were observed before: [Cluster] on the side of the cluster,
// [Node] in the pod. [Observations] says what has to be observed in the pod. A new kind is a
// new file. The marker +podvisor:entry of its [Kind] lists it in the generated [Kinds]. A
// program that embeds the package serves others by Cluster.Kinds and Node.Kinds.
//
// The package observes and makes nothing; internal/storage/probe and
// internal/storage/image do. It computes; it touches nothing.
//
// Traps: the name of a volume in the pod is the name in the spec, unless the pod has that
// name already. So find a volume by its path and not by its name. A disk outside the
// folder of the pod's ephemeral disks must not be made from a source that replaces files;
// attach refuses it. It also refuses a disk that outlives the pod in a format other than
// raw. The format is stored nowhere, and a guest that wrote the header of an image to its
// disk would choose it.
package volume
