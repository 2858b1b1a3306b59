package image

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/vmi"
)

// CopyOnce copies the file from to the path to if nothing is there. What is there stays,
// and must be a regular file of the size of from, not a link: it may be on a claim. The
// copy appears whole or not at all.
func CopyOnce(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	there, err := os.Lstat(to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return copyOnce(source, to)
	case err != nil:
		return err
	case !there.Mode().IsRegular() || there.Size() != info.Size():
		return fmt.Errorf("%s is not a regular file of %d bytes: delete it to have one made: %w", to, info.Size(), vmi.ErrInvalid)
	}
	return nil
}

// copyNonzero copies with holes in place of blocks of zeros: the flash of a firmware has
// little but these, and QEMU reads nothing of holes.
func copyNonzero(to *os.File, from io.Reader) error {
	block, zeros := make([]byte, 64<<10), make([]byte, 64<<10)
	at := int64(0)
	for {
		n, err := io.ReadFull(from, block)
		if n > 0 && !bytes.Equal(block[:n], zeros[:n]) {
			if _, err := to.WriteAt(block[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return to.Truncate(at)
		case err != nil:
			return err
		}
	}
}

func copyOnce(source io.Reader, to string) error {
	f, err := os.CreateTemp(filepath.Dir(to), "."+filepath.Base(to)+"-*")
	if err != nil {
		return unnamed(err)
	}
	err = copyNonzero(f, source)
	err = unnamed(cmp.Or(err, f.Chmod(0o600), f.Sync(), f.Close()))
	if err == nil {
		err = unnamed(moveOnce(f.Name(), to))
	}
	if gone := os.Remove(f.Name()); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, unnamed(gone))
	}
	return err
}

// BootFile finds the regular file in the container image whose root is the folder
// root, and returns its path. No link is followed. A fault of the image is an error
// that wraps [vmi.ErrInvalid].
func BootFile(root, file string) (string, error) {
	f, name, err := find(root, file)
	if err != nil {
		return "", err
	}
	return filepath.Join(root, name), f.Close()
}

// Checksum returns the CRC-32 (IEEE) of the file, as it is read. It ends when ctx does:
// the file is of an image, and as large as its author made it.
func Checksum(ctx context.Context, path string) (uint32, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	sum, block := crc32.NewIEEE(), make([]byte, 256<<10)
	for {
		n, err := f.Read(block)
		_, _ = sum.Write(block[:n]) // never fails
		switch {
		case errors.Is(err, io.EOF):
			return sum.Sum32(), nil
		case err != nil:
			return 0, err
		case ctx.Err() != nil:
			return 0, fmt.Errorf("read %s: %w", path, context.Cause(ctx))
		}
	}
}

// StateDir makes the folder dir for the state of a device, which may be on a claim. What
// is there and is not a folder is an error that wraps [vmi.ErrInvalid].
func StateDir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	var s unix.Stat_t
	if err := unix.Lstat(dir, &s); err != nil {
		return &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	if s.Mode&unix.S_IFMT != unix.S_IFDIR {
		return fmt.Errorf("%s is not a folder: delete it to have one made: %w", dir, vmi.ErrInvalid)
	}
	return nil
}
