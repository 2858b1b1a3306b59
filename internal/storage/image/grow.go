package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/vmi"
)

// grow extends the raw image at path by zeros to size bytes, which take no space. One
// that is as large or larger stays as it is. A symbolic link is not followed.
func grow(path string, size int64) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if errors.Is(err, unix.ELOOP) {
		return fmt.Errorf("%s is a symbolic link, which is not followed: %w", path, vmi.ErrInvalid)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file: %w", path, vmi.ErrInvalid)
	case info.Size() >= size:
		return nil
	}
	if err := f.Truncate(size); err != nil {
		return &fs.PathError{Op: "extend", Path: path, Err: errors.Unwrap(err)}
	}
	return f.Sync()
}
