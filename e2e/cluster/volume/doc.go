// Package volume gives the claims of a local cluster their volumes.
//
// [Run] makes a volume for each claim of the storage class local, which is
// the cluster's default, as soon as the scheduler has chosen a node for the first pod
// with the claim: a folder of the node for a claim with a file system, a loop device
// for one in block mode. It is a local volume: pods with the claim run on that node
// from then on. When the claim is deleted, so are the volume and what was in it.
//
// It is an edge: the API of Kubernetes for volumes, and the kernel's loop devices,
// which belong to the whole host. [Detach] gives those of a cluster back.
//
// Traps: a volume with a file system has no limit of its own but the disk of the
// host, and cannot be enlarged.
package volume
