package probe

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// Path returns the facts of path. That nothing is there is a fact; anything but a
// regular file, a block device or a directory is an error that wraps
// [vmi.ErrInvalid]. So is a symbolic link, which is not followed: whoever writes to
// the volume would choose with it which file of the pod becomes the disk.
func Path(path string) (storage.Facts, error) {
	// A FIFO without O_NONBLOCK blocks until its other end is opened.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return storage.Facts{}, nil
	case errors.Is(err, unix.ELOOP):
		return storage.Facts{}, fmt.Errorf("%s is or contains a symbolic link, which is not followed: %w", path, vmi.ErrInvalid)
	case errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV): // of a socket, and of a device without a driver
		return storage.Facts{}, fmt.Errorf("%s is neither a file, a block device nor a directory: %w", path, vmi.ErrInvalid)
	case errors.Is(err, fs.ErrPermission) && isBlockDevice(path):
		return storage.Facts{}, fmt.Errorf("%s cannot be opened by user %d: "+
			"the container runtime of the node must give devices of claims to the user of the pod (device_ownership_from_security_context = true): %w", path, os.Geteuid(), fs.ErrPermission)
	case err != nil:
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
		return storage.Facts{}, fmt.Errorf("%s is neither a file, a block device nor a directory but %s: %w", path, mode.Type(), vmi.ErrInvalid)
	}
}

func isBlockDevice(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&os.ModeDevice != 0 && info.Mode()&os.ModeCharDevice == 0
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
	direct, err := directIO(f)
	if err != nil {
		return storage.Facts{}, err
	}
	facts := storage.Facts{Kind: kind, DirectIO: direct, SizeBytes: size}
	var s unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &s); err != nil {
		return storage.Facts{}, &os.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	if kind == storage.BlockDevice {
		facts.Blocks, err = deviceBlocks(f, s)
		return facts, err
	}
	facts.AllocatedBytes = s.Blocks * 512
	block := wide(s.Blksize)
	facts.Blocks = storage.Blocks{LogicalBytes: block, PhysicalBytes: block, DiscardBytes: block}
	return facts, nil
}

// wide is a number whose type depends on the architecture.
func wide[T int32 | int64](n T) int64 { return int64(n) }

// directIO tries to open the file past the page cache. File systems that cannot,
// like tmpfs of older kernels, return EINVAL.
func directIO(f *os.File) (bool, error) {
	// Not by its path, where another file may be now.
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.O_RDONLY|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EINVAL) {
		return false, nil
	}
	if err != nil {
		return false, &os.PathError{Op: "open", Path: f.Name(), Err: err}
	}
	return true, unix.Close(fd)
}
