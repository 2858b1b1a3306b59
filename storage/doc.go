// Package storage has the types of an instance's disks. They are what QEMU opens for each
// ([Attachment]), what that is made from ([Source]) and what was observed at a path
// ([Facts]). [Inspect] says whether a file can be a disk. What it says of a container disk
// before it is packed, the launcher says of it later.
//
// Package storage/volume computes attachments from volumes, internal/storage/probe and
// internal/storage/image observe paths and container disks, and internal/storage/image
// makes files.
//
// The package computes; it touches nothing.
//
// Traps: the format of an attachment is decided once, by the volume's kind or by the
// inspection of an image. It is passed to every program. QEMU must never detect the format
// of a disk that a guest has written: the guest would choose which file QEMU opens. A file
// on a claim is a [Persistent] and never a [Blank], which is replaced at every start.
package storage
