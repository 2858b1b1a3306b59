package share

import (
	"bytes"
	"encoding/binary"
	"errors"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// openFlags are the flags of an open file that reach the server. Files are opened
// without O_DIRECT, for which a request would have to lie at a multiple of a block.
const openFlags = unix.O_ACCMODE | unix.O_APPEND | unix.O_TRUNC | unix.O_SYNC | unix.O_DSYNC

// reopen opens a file for reading or writing. What is no file is refused: to open a
// pipe would wait, and the guest has pipes and devices of its own.
func (n *node) reopen(flags uint32) (int, error) {
	switch n.kind {
	case unix.S_IFREG:
		return unix.Open(path(n.fd), int(flags&openFlags)|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	case unix.S_IFDIR:
		return -1, syscall.EISDIR
	case unix.S_IFLNK:
		return -1, syscall.ELOOP
	}
	return -1, syscall.EPERM
}

// writes says that a file opened with these flags may be changed.
func writes(flags uint32) bool {
	return flags&unix.O_ACCMODE != unix.O_RDONLY || flags&unix.O_TRUNC != 0
}

// Open opens a file.
func (f *folder) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if f.readOnly && writes(in.Flags) {
		return fuse.EROFS
	}
	return status(f.table.at(in.NodeId, func(n *node) error {
		fd, err := n.reopen(in.Flags)
		if err != nil {
			return err
		}
		out.Fh, err = f.table.open(fd)
		return err
	}))
}

// Create makes a file and opens it.
func (f *folder) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	if err := f.changed(name); err != nil {
		return status(err)
	}
	return status(f.table.at(in.NodeId, func(n *node) error {
		// Always a new file: one that is there may be something else by now.
		const fresh = unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
		fd, err := unix.Openat(n.fd, name, int(in.Flags&openFlags)|fresh, in.Mode&(permissions|sticky))
		if errors.Is(err, unix.EEXIST) && in.Flags&unix.O_EXCL == 0 {
			return f.reuse(n, in, name, out)
		}
		if err != nil {
			return err
		}
		if out.Fh, err = f.table.open(fd); err != nil {
			return err
		}
		if err := f.entry(n, name, &out.EntryOut); err != nil {
			f.table.release(out.Fh)
			return err
		}
		return nil
	}))
}

// reuse opens the file that is there already.
func (f *folder) reuse(n *node, in *fuse.CreateIn, name string, out *fuse.CreateOut) error {
	if err := f.entry(n, name, &out.EntryOut); err != nil {
		return err
	}
	err := f.table.at(out.NodeId, func(there *node) error {
		fd, err := there.reopen(in.Flags)
		if err != nil {
			return err
		}
		out.Fh, err = f.table.open(fd)
		return err
	})
	if err != nil {
		f.table.forget(out.NodeId, 1)
	}
	return err
}

// Read reads from an open file.
func (f *folder) Read(_ <-chan struct{}, in *fuse.ReadIn, buffer []byte) (fuse.ReadResult, fuse.Status) {
	n := 0
	err := f.table.in(in.Fh, func(o *opened) (err error) {
		n, err = unix.Pread(o.fd, buffer[:min(len(buffer), int(in.Size))], int64(in.Offset))
		return err
	})
	return fuse.ReadResultData(buffer[:max(n, 0)]), status(err)
}

// Write writes to an open file.
func (f *folder) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	n := 0
	err := f.table.in(in.Fh, func(o *opened) (err error) {
		n, err = unix.Pwrite(o.fd, data, int64(in.Offset))
		return err
	})
	return uint32(max(n, 0)), status(err)
}

// Lseek finds data and holes in an open file.
func (f *folder) Lseek(_ <-chan struct{}, in *fuse.LseekIn, out *fuse.LseekOut) fuse.Status {
	if in.Whence != unix.SEEK_DATA && in.Whence != unix.SEEK_HOLE {
		return fuse.EINVAL
	}
	return status(f.table.in(in.Fh, func(o *opened) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		at, err := unix.Seek(o.fd, int64(in.Offset), int(in.Whence))
		out.Offset = uint64(at)
		return err
	}))
}

// Fallocate reserves or frees room of an open file.
func (f *folder) Fallocate(_ <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	return status(f.table.in(in.Fh, func(o *opened) error {
		return unix.Fallocate(o.fd, in.Mode, int64(in.Offset), int64(in.Length))
	}))
}

// Flush is called when a program of the guest closes a file.
func (f *folder) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return fuse.OK }

// Fsync writes an open file to the storage.
func (f *folder) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return status(f.table.in(in.Fh, func(o *opened) error { return unix.Fsync(o.fd) }))
}

// FsyncDir writes an open folder to the storage.
func (f *folder) FsyncDir(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return f.Fsync(nil, in)
}

// Release closes an open file.
func (f *folder) Release(_ <-chan struct{}, in *fuse.ReleaseIn) { f.table.release(in.Fh) }

// ReleaseDir closes an open folder.
func (f *folder) ReleaseDir(in *fuse.ReleaseIn) { f.table.release(in.Fh) }

// OpenDir opens a folder.
func (f *folder) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return status(f.table.at(in.NodeId, func(n *node) error {
		if n.kind != unix.S_IFDIR {
			return syscall.ENOTDIR
		}
		fd, err := unix.Openat(n.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		out.Fh, err = f.table.open(fd)
		return err
	}))
}

// ReadDir lists an open folder from the place where the guest is.
func (f *folder) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return status(f.table.in(in.Fh, func(o *opened) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		if _, err := unix.Seek(o.fd, int64(in.Offset), unix.SEEK_SET); err != nil {
			return err
		}
		buffer := make([]byte, 32<<10)
		for {
			n, err := unix.Getdents(o.fd, buffer)
			if err != nil || n == 0 {
				return err
			}
			if !list(buffer[:n], out) {
				return nil
			}
		}
	}))
}

// list adds entries of a folder as the kernel returns them. It is false when there is
// no more room.
func list(entries []byte, out *fuse.DirEntryList) bool {
	for len(entries) > 0 {
		// struct linux_dirent64: inode, place after the entry, size, type, name.
		size := binary.NativeEndian.Uint16(entries[16:])
		name, _, _ := bytes.Cut(entries[19:size], []byte{0})
		if !out.AddDirEntry(fuse.DirEntry{
			Ino: binary.NativeEndian.Uint64(entries), Off: binary.NativeEndian.Uint64(entries[8:]),
			Mode: uint32(entries[18]) << 12, Name: string(name),
		}) {
			return false
		}
		entries = entries[size:]
	}
	return true
}
