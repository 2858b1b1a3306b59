// Package cloudinit computes what cloud-init and its relatives find on the disk
// that a machine is configured with.
//
// [NoCloud] returns the files of the NoCloud data source. The package writes
// nothing; storage/image makes the disk. It computes; it touches nothing.
package cloudinit
