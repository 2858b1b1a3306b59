package image

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// createOnce makes a sparse file of size bytes at path if nothing is there. What
// is there, or comes there meanwhile, stays as it is. The file appears with its
// full size, so that a process that dies leaves no file that is too short. The
// folder must exist: it is a mount point, and a folder made in its place would be
// lost with the pod.
func createOnce(path string, size int64) error {
	if size <= 0 {
		return fmt.Errorf("size of %d bytes is not above 0", size)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return unnamed(err)
	}
	err = unnamed(cmp.Or(f.Truncate(size), f.Chmod(0o660), f.Sync(), f.Close()))
	if err == nil {
		err = unnamed(moveOnce(f.Name(), path))
	}
	if gone := os.Remove(f.Name()); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, unnamed(gone))
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// unnamed is a failure without the name of the new file, which is another each
// time: an error that repeats must have the same text.
func unnamed(err error) error {
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return fmt.Errorf("%s new file: %w", e.Op, e.Err)
	}
	if e := (*os.LinkError)(nil); errors.As(err, &e) {
		return fmt.Errorf("%s new file to %s: %w", e.Op, e.New, e.Err)
	}
	return err
}

// moveOnce gives the file from the name to, or fails with [fs.ErrExist] if that is
// the name of anything. NFS has no renameat2 with flags (EINVAL) but has links;
// FAT and CIFS have no links.
func moveOnce(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return os.Link(from, to)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}
