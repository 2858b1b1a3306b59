package image

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Copy copies the image of the container disk whose root is the folder root to the
// folder to/disk, where [ContainerDisk] finds it. file is as for ContainerDisk. A
// copy that exists is kept, so Copy may be repeated; a copy that is interrupted
// leaves no file there.
func Copy(root, file, to string) error {
	from, name, err := find(root, file)
	if err != nil {
		return fmt.Errorf("container disk: %w", err)
	}
	defer from.Close()
	dir := filepath.Join(to, diskDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	target := filepath.Join(dir, path.Base(name))
	if _, err := os.Lstat(target); err == nil {
		return nil
	}
	return atomically(target, to, 0o440, func(f *os.File) error { return copySparse(f, from) })
}

// Install copies the program that is running to the file at path, executable for
// all users.
func Install(path string) error {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer from.Close()
	return atomically(path, filepath.Dir(path), 0o755, func(f *os.File) error {
		_, err := io.Copy(f, from)
		return err
	})
}

// atomically makes the file at path, in one step, from what write writes to a
// file in the folder temp of the same file system.
func atomically(path, temp string, mode os.FileMode, write func(*os.File) error) (err error) {
	f, err := os.CreateTemp(temp, ".copy-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err := errors.Join(write(f), f.Chmod(mode), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// copySparse copies from to to without the holes.
func copySparse(to, from *os.File) error {
	info, err := from.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	if err := to.Truncate(size); err != nil {
		return err
	}
	for at := int64(0); at < size; {
		data, end, err := extent(from, at, size)
		if err != nil || data == size {
			return err
		}
		if _, err := to.Seek(data, io.SeekStart); err != nil {
			return err
		}
		if _, err := from.Seek(data, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.CopyN(to, from, end-data); err != nil {
			return err
		}
		at = end
	}
	return nil
}

// extent is the first extent of data at or after at. A file system without holes
// has one extent.
func extent(f *os.File, at, size int64) (data, end int64, err error) {
	data, err = f.Seek(at, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return size, size, nil
	case errors.Is(err, unix.EINVAL):
		return at, size, nil
	case err != nil:
		return 0, 0, err
	}
	end, err = f.Seek(data, unix.SEEK_HOLE)
	return data, end, err
}
