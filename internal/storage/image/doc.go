// Package image finds, inspects, makes and copies disk images.
//
// An [Inspector] finds the one image in a container disk and inspects it, in a process
// of its own with limits if it has a command for that;
// [Make] makes the file of a [storage.Attachment] (a qcow2 overlay or an empty
// qcow2 by qemu-img, an ISO 9660 file system, also of the files in a folder, and a sparse raw file by
// itself);
// [Copy] copies the image out of a container image, for clusters that cannot mount
// one.
//
// It is an edge: it touches files and runs qemu-img. Which images an instance
// needs is decided by package storage/volume.
//
// Traps: a container disk is untrusted. Its path is resolved beneath the image's
// root without following a link, its format is read from its first bytes and
// passed to QEMU from then on, and a qcow2 that refers to another file is refused,
// because QEMU would open that file with the launcher's permissions. A file of a
// [storage.Persistent] or [storage.Grown] is never replaced; every other one is.
package image
