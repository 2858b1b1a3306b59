// Package storage resolves the volumes of a machine to what its disks are made
// of.
//
// [Resolve] returns one [Attachment] for each disk of the machine: the path and
// format that QEMU opens, and the [Source] it is made from. It makes nothing;
// storage/image does, and storage/probe tells the facts of what is there.
//
// The package computes; it touches nothing.
//
// Trap: the format of an attachment is decided once, here or by what looked into
// the file, and is said to every program from then on. Whoever lets QEMU guess
// the format of a disk that a guest has written lets the guest choose what is
// opened.
package storage
