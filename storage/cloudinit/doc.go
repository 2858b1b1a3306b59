// Package cloudinit computes the files of the disk by which cloud-init, and
// programs that read the same data sources, configure a guest.
//
// [NoCloud] returns the files of the NoCloud data source, [ConfigDrive] those of
// the ConfigDrive data source. Data that the spec has in a Secret is an argument,
// [Secrets]: it is read in the pod, and by nothing else. The package writes
// nothing; internal/storage/image makes the disk. It computes; it touches nothing.
//
// Traps: cloud-init takes the instance ID of NoCloud from instance-id and that of
// ConfigDrive from uuid. When either changes, the guest runs its user data again.
package cloudinit
