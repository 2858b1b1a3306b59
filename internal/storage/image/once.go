package image

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

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
	for try := 1; ; try++ {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		err := tryOnce(path, size)
		// Another process may have taken the new file for one that was left, before it
		// was locked.
		if try < maxTries && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EWOULDBLOCK)) {
			continue
		}
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
}

// maxTries is how often a file is made that others remove.
const maxTries = 5

func tryOnce(path string, size int64) error {
	if err := removeLeft(path); err != nil {
		return unnamed(err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), newPrefix(path)+"*")
	if err != nil {
		return unnamed(err)
	}
	err = unnamed(cmp.Or(lock(f), f.Truncate(size), f.Chmod(0o660), f.Sync()))
	if err == nil {
		err = unnamed(moveOnce(f.Name(), path))
	}
	if gone := os.Remove(f.Name()); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, unnamed(gone))
	}
	return errors.Join(err, unnamed(f.Close()))
}

// newPrefix begins the names of files that become the one at path.
func newPrefix(path string) string { return "." + filepath.Base(path) + "-" }

// removeLeft removes the files that processes left that died before theirs was the one
// at path.
func removeLeft(path string) error {
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	list, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer list.Close()
	names, err := list.Readdirnames(maxListed)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	err = nil
	for _, name := range names {
		if number, ok := strings.CutPrefix(name, newPrefix(path)); ok && isNumber(number) {
			err = errors.Join(err, removeUnlocked(dir, name))
		}
	}
	return err
}

// maxListed is how many names of a folder are read: others may fill it.
const maxListed = 4096

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil
}

// removeUnlocked removes a regular file that no process holds a lock on.
func removeUnlocked(dir *os.Root, name string) error {
	if i, err := dir.Lstat(name); err != nil || !i.Mode().IsRegular() {
		return ignoreMissing(err)
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return ignoreMissing(err)
	}
	defer f.Close()
	if errors.Is(lock(f), unix.EWOULDBLOCK) {
		return nil
	}
	return ignoreMissing(dir.Remove(name))
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// lock takes the lock of a file if no other process has it. A file system without locks
// has none to respect.
func lock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOLCK) {
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
