// Package image finds, inspects, makes and copies disk images.
//
// [ContainerDisk] finds the one image in a container disk and looks into its
// head; [Make] makes the file of a [storage.Attachment] (a qcow2 overlay or an
// empty qcow2 by qemu-img, an ISO 9660 file system by itself); [Copy] takes the
// image out of a container image, for clusters that cannot mount one.
//
// It is an edge: it touches files and runs qemu-img. Which images a machine
// needs is decided by package storage.
//
// Traps: a container disk is a stranger's file. Its path is resolved beneath the
// image's root without following a link, its format is read from its first bytes
// and said to QEMU from then on, and a qcow2 that refers to another file is
// refused, because QEMU would open that file in the launcher's name.
package image
