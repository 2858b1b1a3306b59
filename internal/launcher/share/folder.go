package share

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// timeout is how long the guest may take what it knows of a file for true: a change by
// another process is seen after it.
const timeout = time.Second

// folder answers the requests of a guest about a folder and all below it.
type folder struct {
	fuse.RawFileSystem // answers what is not answered here: it is not supported
	table              *table
	readOnly           bool
}

// newFolder takes a copy of the descriptor of the root.
func newFolder(root int, c Config) *folder {
	f := &folder{RawFileSystem: fuse.NewDefaultRawFileSystem(), readOnly: c.ReadOnly}
	var stat unix.Stat_t
	fd, err := unix.FcntlInt(uintptr(root), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.Fstat(fd, &stat)
	}
	if err != nil {
		fd = -1 // every request fails
	}
	f.table = newTable(fd, &stat, c)
	return f
}

func (f *folder) String() string { return "share" }

func (f *folder) close() { f.table.close() }

// status is an error as the guest gets it.
func status(err error) fuse.Status {
	var errno syscall.Errno
	switch {
	case err == nil:
		return fuse.OK
	case errors.As(err, &errno) && errno != 0:
		return fuse.Status(errno)
	}
	return fuse.EIO
}

// nameFault says why a text is not the name of an entry of a folder.
func nameFault(name string) error {
	switch {
	case name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00"):
		return syscall.EINVAL
	case len(name) > unix.NAME_MAX:
		return syscall.ENAMETOOLONG
	}
	return nil
}

// changed is the fault of a change.
func (f *folder) changed(names ...string) error {
	for _, n := range names {
		if err := nameFault(n); err != nil {
			return err
		}
	}
	if f.readOnly {
		return syscall.EROFS
	}
	return nil
}

// path is the path of what a descriptor is of, which does not change.
func path(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// Lookup reports an entry of a folder.
func (f *folder) Lookup(_ <-chan struct{}, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	if err := nameFault(name); err != nil {
		return status(err)
	}
	return status(f.table.at(in.NodeId, func(n *node) error { return f.entry(n, name, out) }))
}

// entry adds the entry of a folder to what the guest knows.
func (f *folder) entry(n *node, name string, out *fuse.EntryOut) error {
	if n.kind != unix.S_IFDIR {
		return syscall.ENOTDIR
	}
	fd, err := unix.Openat(n.fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return errors.Join(err, unix.Close(fd))
	}
	id, err := f.table.add(fd, &stat)
	if err != nil {
		return err
	}
	out.NodeId = id
	attributes(&stat, &out.Attr)
	out.SetEntryTimeout(timeout)
	out.SetAttrTimeout(timeout)
	return nil
}

func attributes(s *unix.Stat_t, out *fuse.Attr) {
	out.Ino, out.Size, out.Blocks = s.Ino, uint64(s.Size), uint64(s.Blocks)
	out.Atime, out.Atimensec = uint64(s.Atim.Sec), uint32(s.Atim.Nsec)
	out.Mtime, out.Mtimensec = uint64(s.Mtim.Sec), uint32(s.Mtim.Nsec)
	out.Ctime, out.Ctimensec = uint64(s.Ctim.Sec), uint32(s.Ctim.Nsec)
	out.Mode, out.Nlink, out.Rdev, out.Blksize = s.Mode, uint32(s.Nlink), uint32(s.Rdev), uint32(s.Blksize)
	out.Uid, out.Gid = s.Uid, s.Gid
}

// Forget takes back one or more lookups of a file.
func (f *folder) Forget(id, n uint64) { f.table.forget(id, n) }

// GetAttr reports the attributes of a file.
func (f *folder) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	return status(f.table.at(in.NodeId, func(n *node) error { return n.attributes(out) }))
}

func (n *node) attributes(out *fuse.AttrOut) error {
	var stat unix.Stat_t
	if err := unix.Fstat(n.fd, &stat); err != nil {
		return err
	}
	attributes(&stat, &out.Attr)
	out.SetTimeout(timeout)
	return nil
}

// StatFs reports how much room the file system has.
func (f *folder) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	return status(f.table.at(fuse.FUSE_ROOT_ID, func(n *node) error {
		var s syscall.Statfs_t
		if err := syscall.Fstatfs(n.fd, &s); err != nil {
			return err
		}
		out.FromStatfsT(&s)
		return nil
	}))
}

// Readlink reports where a symbolic link leads. The guest follows it, among its own files.
func (f *folder) Readlink(_ <-chan struct{}, in *fuse.InHeader) (target []byte, s fuse.Status) {
	err := f.table.at(in.NodeId, func(n *node) error {
		if n.kind != unix.S_IFLNK {
			return syscall.EINVAL
		}
		buffer := make([]byte, unix.PathMax)
		size, err := unix.Readlinkat(n.fd, "", buffer)
		target = buffer[:max(size, 0)]
		return err
	})
	return target, status(err)
}
