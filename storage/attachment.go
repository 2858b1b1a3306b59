package storage

import "github.com/podvisor/podvisor/storage/cloudinit"

// Format is how a disk's content is laid out in its file or device.
type Format string

// The formats.
const (
	// Raw: byte n of the file is byte n of the disk.
	Raw Format = "raw"
	// QCOW2 is QEMU's own format.
	QCOW2 Format = "qcow2"
)

// Attachment is what QEMU opens for one disk.
type Attachment struct {
	// Name is the name of the disk and its volume in the spec.
	Name string
	// Path is the file or device.
	Path string
	// Format is the format of what is at Path.
	Format Format
	// SizeBytes is the size of the disk that the guest sees. 0: not known.
	SizeBytes int64
	// Source is what the file at Path is made from before the machine starts.
	// Nil: it exists already.
	Source Source
}

// Source is what a disk is made from: an [Overlay], a [Blank] or a [Seed].
type Source interface{ source() }

// Overlay is a disk that begins as another one and keeps what is written to it
// for itself.
type Overlay struct{ Base Image }

// Blank is a disk of zeros.
type Blank struct{}

// Seed is a disk with an ISO 9660 file system.
type Seed struct {
	// Label is the name of the file system.
	Label string
	// Files are the files in its root.
	Files []cloudinit.File
}

func (Overlay) source() {}
func (Blank) source()   {}
func (Seed) source()    {}

// Image is a disk image that exists.
type Image struct {
	Path   string
	Format Format
	// SizeBytes is the size of the disk in the image, not that of the file.
	SizeBytes int64
}
