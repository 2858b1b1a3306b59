// Package cloudinit computes the files of the disk by which cloud-init, and
// programs that read the same data sources, configure a guest.
//
// [NoCloud] returns the files of the NoCloud data source. The package writes
// nothing; storage/image makes the disk. It computes; it touches nothing.
package cloudinit
