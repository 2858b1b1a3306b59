package probe

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Facts are what is known of a file or block device.
type Facts struct {
	// Device says that it is a block device.
	Device bool
	// DirectIO says that it can be opened past the page cache.
	DirectIO bool
	// SizeBytes is the size of the file or device.
	SizeBytes int64
}

// Path returns the facts of the file or block device at path. Anything else
// is an error.
func Path(path string) (Facts, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return Facts{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Facts{}, err
	}
	mode := info.Mode()
	device := mode&os.ModeDevice != 0 && mode&os.ModeCharDevice == 0
	if !mode.IsRegular() && !device {
		return Facts{}, fmt.Errorf("%s is neither a file nor a block device but %s", path, mode.Type())
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return Facts{}, err
	}
	direct, err := directIO(path)
	return Facts{Device: device, DirectIO: direct, SizeBytes: size}, err
}

// directIO tries to open path past the page cache. File systems that cannot,
// like tmpfs of older kernels, say EINVAL.
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
