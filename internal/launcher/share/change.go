package share

import (
	"errors"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// The bits of a mode.
const (
	permissions = 0o777
	sticky      = unix.S_ISVTX
)

// SetAttr changes attributes of a file.
func (f *folder) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	if err := f.changed(); err != nil {
		return status(err)
	}
	return status(f.table.at(in.NodeId, func(n *node) error {
		if err := errors.Join(n.setMode(in), n.setOwner(in)); err != nil {
			return err
		}
		if err := errors.Join(f.setSize(n, in), n.setTimes(in)); err != nil {
			return err
		}
		return n.attributes(out)
	}))
}

// setMode changes the permissions. A bit by which a program runs as another user or
// group is refused; a folder may hand its group down.
func (n *node) setMode(in *fuse.SetAttrIn) error {
	mode, ok := in.GetMode()
	if !ok {
		return nil
	}
	if n.kind == unix.S_IFLNK {
		return syscall.EOPNOTSUPP
	}
	allowed := uint32(permissions | sticky)
	if n.kind == unix.S_IFDIR {
		allowed |= unix.S_ISGID
	}
	if mode&^allowed != 0 {
		return syscall.EPERM
	}
	return unix.Fchmodat(unix.AT_FDCWD, path(n.fd), mode, 0)
}

// setOwner succeeds for the owner that a file has: the process may change it to no other.
func (n *node) setOwner(in *fuse.SetAttrIn) error {
	uid, toUser := in.GetUID()
	gid, toGroup := in.GetGID()
	if !toUser && !toGroup {
		return nil
	}
	return unix.Fchownat(n.fd, "", int(int32(uid)), int(int32(gid)), unix.AT_EMPTY_PATH)
}

func (f *folder) setSize(n *node, in *fuse.SetAttrIn) error {
	size, ok := in.GetSize()
	if !ok {
		return nil
	}
	if handle, ok := in.GetFh(); ok {
		return f.table.in(handle, func(o *opened) error { return unix.Ftruncate(o.fd, int64(size)) })
	}
	fd, err := n.reopen(unix.O_WRONLY)
	if err != nil {
		return err
	}
	return errors.Join(unix.Ftruncate(fd, int64(size)), unix.Close(fd))
}

func (n *node) setTimes(in *fuse.SetAttrIn) error {
	accessed, a := in.GetATime()
	modified, m := in.GetMTime()
	if !a && !m {
		return nil
	}
	stamp := func(t time.Time, ok bool) unix.Timespec {
		if !ok {
			return unix.Timespec{Nsec: unix.UTIME_OMIT}
		}
		return unix.Timespec{Sec: t.Unix(), Nsec: int64(t.Nanosecond())}
	}
	return unix.UtimesNanoAt(n.fd, "", []unix.Timespec{stamp(accessed, a), stamp(modified, m)}, unix.AT_EMPTY_PATH)
}

// make makes an entry of a folder and reports it to the guest.
func (f *folder) make(parent uint64, name string, out *fuse.EntryOut, do func(fd int) error) fuse.Status {
	if err := f.changed(name); err != nil {
		return status(err)
	}
	return status(f.table.at(parent, func(n *node) error {
		if err := do(n.fd); err != nil {
			return err
		}
		return f.entry(n, name, out)
	}))
}

// Mknod makes a file, a pipe or a socket, and no device.
func (f *folder) Mknod(_ <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	kind := in.Mode & unix.S_IFMT
	if kind != unix.S_IFREG && kind != unix.S_IFIFO && kind != unix.S_IFSOCK && kind != 0 {
		return fuse.EPERM
	}
	return f.make(in.NodeId, name, out, func(fd int) error {
		return unix.Mknodat(fd, name, kind|in.Mode&(permissions|sticky), 0)
	})
}

// Mkdir makes a folder.
func (f *folder) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return f.make(in.NodeId, name, out, func(fd int) error { return unix.Mkdirat(fd, name, in.Mode&(permissions|sticky)) })
}

// Symlink makes a symbolic link, which the server never follows.
func (f *folder) Symlink(_ <-chan struct{}, in *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	return f.make(in.NodeId, name, out, func(fd int) error { return unix.Symlinkat(target, fd, name) })
}

// Link gives a file one more name.
func (f *folder) Link(_ <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	return f.make(in.NodeId, name, out, func(fd int) error {
		return f.table.at(in.Oldnodeid, func(n *node) error {
			if n.kind == unix.S_IFLNK {
				return syscall.EPERM
			}
			return unix.Linkat(unix.AT_FDCWD, path(n.fd), fd, name, unix.AT_SYMLINK_FOLLOW)
		})
	})
}

// Unlink removes what is no folder.
func (f *folder) Unlink(_ <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	return f.remove(in.NodeId, name, 0)
}

// Rmdir removes an empty folder.
func (f *folder) Rmdir(_ <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	return f.remove(in.NodeId, name, unix.AT_REMOVEDIR)
}

func (f *folder) remove(parent uint64, name string, flags int) fuse.Status {
	if err := f.changed(name); err != nil {
		return status(err)
	}
	return status(f.table.at(parent, func(n *node) error { return unix.Unlinkat(n.fd, name, flags) }))
}

// Rename gives an entry another name or folder.
func (f *folder) Rename(_ <-chan struct{}, in *fuse.RenameIn, from, to string) fuse.Status {
	if err := f.changed(from, to); err != nil {
		return status(err)
	}
	if in.Flags&^(unix.RENAME_NOREPLACE|unix.RENAME_EXCHANGE) != 0 {
		return fuse.EINVAL // such as the device node that marks a removed file
	}
	return status(f.table.at(in.NodeId, func(n *node) error {
		return f.table.at(in.Newdir, func(into *node) error {
			return unix.Renameat2(n.fd, from, into.fd, to, uint(in.Flags))
		})
	}))
}
