package probe

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/storage"
)

// Path returns the facts of path. That nothing is there is a fact; anything but a
// regular file, a block device or a directory is an error.
func Path(path string) (storage.Facts, error) {
	// A FIFO without O_NONBLOCK blocks until its other end is opened.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return storage.Facts{}, nil
	}
	if err != nil {
		return storage.Facts{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return storage.Facts{}, err
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return directory(f)
	case mode.IsRegular():
		return content(f, storage.File)
	case mode&os.ModeDevice != 0 && mode&os.ModeCharDevice == 0:
		return content(f, storage.BlockDevice)
	default:
		return storage.Facts{}, fmt.Errorf("%s is neither a file, a block device nor a directory but %s", path, mode.Type())
	}
}

func directory(f *os.File) (storage.Facts, error) {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &s); err != nil {
		return storage.Facts{}, &os.PathError{Op: "statfs", Path: f.Name(), Err: err}
	}
	return storage.Facts{Kind: storage.Directory, FreeBytes: int64(s.Bavail) * s.Frsize}, nil
}

func content(f *os.File, kind storage.Kind) (storage.Facts, error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return storage.Facts{}, err
	}
	direct, err := directIO(f.Name())
	return storage.Facts{Kind: kind, DirectIO: direct, SizeBytes: size}, err
}

// directIO tries to open path past the page cache. File systems that cannot,
// like tmpfs of older kernels, return EINVAL.
func directIO(path string) (bool, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EINVAL) {
		return false, nil
	}
	if err != nil {
		return false, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return true, unix.Close(fd)
}
