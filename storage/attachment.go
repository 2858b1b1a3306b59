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
	// Path is the file or block device.
	Path string
	// Format is the format of what is at Path.
	Format Format
	// SizeBytes is the size of the disk that the guest sees. 0: not known.
	SizeBytes int64
	// ReadOnly says that the guest may not write.
	ReadOnly bool
	// Source is what the file at Path is made from before the domain is created.
	// Nil: it exists already and is never made.
	Source Source
}

// Ephemeral says that the file belongs to the pod and is lost with it, so that
// making it replaces what is at Path.
func (a Attachment) Ephemeral() bool { return a.Source != nil && a.Source.ephemeral() }

// Source is what a disk is made from: an [Overlay], a [Blank], a [Seed] or a
// [Folder], which belong to the pod and are replaced when they are made again, or a
// [Persistent] or [Grown], which never replace anything.
type Source interface{ ephemeral() bool }

// Overlay is a disk of the pod that begins as another one and keeps what is
// written to it for itself.
type Overlay struct{ Base Image }

// Blank is a disk of the pod that begins with zeros.
type Blank struct{}

// Seed is a disk of the pod with an ISO 9660 file system.
type Seed struct {
	// Label is the name of the file system.
	Label string
	// Files are its files. Those that are not in its root have the names of their
	// folders, parted by slashes.
	Files []cloudinit.File
}

// Folder is a disk of the pod with an ISO 9660 file system of the files that are in
// a folder when the disk is made, such as those of a ConfigMap.
type Folder struct {
	// Label is the name of the file system.
	Label string
	// Dir is the folder. One without files becomes an empty file system.
	Dir string
}

// The limits of a [Folder]. No ConfigMap or Secret is larger than an object of the
// API, which is 1.5 MiB.
const (
	// MaxFolderBytes is the size of all its files together.
	MaxFolderBytes = 4 << 20
	// MaxFolderFiles is how many files and folders are in it.
	MaxFolderFiles = 4096
	// MaxFolderDepth is how deep its folders are: ISO 9660 has eight levels, and one
	// of them is the root.
	MaxFolderDepth = 7
	// MaxFolderName is the length of a file's name: what Joliet holds.
	MaxFolderName = 103
)

// Persistent is a raw disk on storage that outlives the pod, such as a claim. It
// is made of zeros if nothing is at its path; what is there is never replaced,
// shortened or written to.
type Persistent struct{}

// Grown is a raw disk on storage that outlives the pod, which is at its path and is
// smaller than the attachment says. It is extended by zeros, and never shortened.
type Grown struct{}

func (Overlay) ephemeral() bool    { return true }
func (Blank) ephemeral() bool      { return true }
func (Seed) ephemeral() bool       { return true }
func (Folder) ephemeral() bool     { return true }
func (Persistent) ephemeral() bool { return false }
func (Grown) ephemeral() bool      { return false }

// Image is a disk image that exists.
type Image struct {
	Path   string
	Format Format
	// SizeBytes is the size of the disk in the image, not that of the file.
	SizeBytes int64
	// Device says that a block device is at Path, not a file.
	Device bool
}
