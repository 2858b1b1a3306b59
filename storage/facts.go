package storage

// Facts are what was observed at a path.
type Facts struct {
	// Kind is what is there. Empty: nothing.
	Kind Kind
	// SizeBytes is the size of a file or block device. 0 for a directory.
	SizeBytes int64
	// FreeBytes is the space that an ordinary user may still take in the file
	// system of a directory. 0 for everything else.
	FreeBytes int64
	// DirectIO says that a file or block device can be opened past the page cache.
	DirectIO bool
	// AllocatedBytes is the space that a file takes in its file system. 0 for
	// everything else.
	AllocatedBytes int64
	// Blocks are the blocks of a block device, or of the file system that a file is
	// in.
	Blocks Blocks
}

// Blocks are the sizes of blocks. The zero value is not known.
type Blocks struct {
	// LogicalBytes is the smallest piece that is read or written.
	LogicalBytes int64
	// PhysicalBytes is the piece that is written at once.
	PhysicalBytes int64
	// DiscardBytes is the smallest piece that can be given back. 0: none can, or it
	// is not known.
	DiscardBytes int64
}

// Kind is what is at a path.
type Kind string

// The kinds.
const (
	// Missing: nothing.
	Missing Kind = ""
	// File: a regular file.
	File Kind = "file"
	// BlockDevice: a block device.
	BlockDevice Kind = "block device"
	// Directory: a directory.
	Directory Kind = "directory"
)
