// Package volume gives back the loop devices of a local cluster's volumes.
//
// Loop devices belong to the whole host and outlive the cluster that made them (program
// csi of package toolchain). [Detach] frees those of the files of a cluster.
//
// It is an edge: the kernel's loop devices.
package volume
