package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/vmi"
)

// diskDir is the folder of a container disk that holds its one image.
const diskDir = "disk"

// find opens the image of a container disk and returns its path beneath root.
func find(root, file string) (*os.File, string, error) {
	dir, err := os.OpenFile(root, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, "", err
	}
	defer dir.Close()
	if file == "" {
		return only(dir)
	}
	name := strings.TrimPrefix(path.Clean("/"+file), "/")
	f, err := regular(dir, name)
	if errors.Is(err, unix.ENOENT) {
		// A copy of the container disk has nothing but the image, in /disk.
		copied := path.Join(diskDir, path.Base(name))
		if f, copyErr := regular(dir, copied); copyErr == nil {
			return f, copied, nil
		}
	}
	return f, name, err
}

// only opens the one file in /disk.
func only(root *os.File) (*os.File, string, error) {
	d, err := beneath(root, diskDir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, "", err
	}
	defer d.Close()
	// One more than the message below lists.
	entries, err := d.ReadDir(11)
	if len(entries) == 0 {
		return nil, "", fmt.Errorf("the folder /%s is empty and must hold exactly one file (%w): %w", diskDir, err, vmi.ErrInvalid)
	}
	if len(entries) > 1 {
		return nil, "", fmt.Errorf("the folder /%s must hold exactly one file and holds %s: %w", diskDir, list(entries), vmi.ErrInvalid)
	}
	name := path.Join(diskDir, entries[0].Name())
	f, err := regular(root, name)
	return f, name, err
}

// list names the entries in the order of their names: file systems give them in any.
func list(entries []fs.DirEntry) string {
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	var names []string
	for _, e := range entries[:min(len(entries), 10)] {
		names = append(names, fmt.Sprintf("%q", e.Name()))
	}
	if len(entries) > 10 {
		names = append(names, "more")
	}
	return strings.Join(names, ", ")
}

// regular opens a regular file beneath root for reading.
func regular(root *os.File, name string) (*os.File, error) {
	// The name goes into XML and into messages.
	if strings.ContainsFunc(name, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) {
		return nil, fmt.Errorf("%q: the name has characters that cannot be printed: %w", "/"+name, vmi.ErrInvalid)
	}
	// A FIFO without O_NONBLOCK blocks until its other end is opened.
	f, err := beneath(root, name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("/%s is not a regular file but %s: %w", name, info.Mode(), vmi.ErrInvalid)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// beneath opens name in the same file system beneath root, following no link.
func beneath(root *os.File, name string, flags int) (*os.File, error) {
	how := unix.OpenHow{
		Flags:   uint64(flags | unix.O_CLOEXEC),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	}
	for tries := 0; ; tries++ {
		fd, err := unix.Openat2(int(root.Fd()), name, &how)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), path.Join(root.Name(), name)), nil
		case (errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR)) && tries < 10:
			continue // a rename happened during the resolution of the path
		case errors.Is(err, unix.ELOOP):
			return nil, fmt.Errorf("/%s is or contains a symbolic link, which is not followed (%w): %w", name, err, vmi.ErrInvalid)
		case errors.Is(err, unix.EXDEV):
			return nil, fmt.Errorf("/%s is outside the container disk (%w): %w", name, err, vmi.ErrInvalid)
		case errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV): // of a socket, and of a device without a driver
			return nil, fmt.Errorf("/%s is not a regular file (%w): %w", name, err, vmi.ErrInvalid)
		case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
			return nil, fmt.Errorf("/%s does not exist (%w): %w", name, err, vmi.ErrInvalid)
		case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
			return nil, fmt.Errorf("/%s cannot be read by user %d; it should belong to user and group %d (%w): %w", name, os.Geteuid(), vmi.RuntimeUID, err, vmi.ErrInvalid)
		default:
			return nil, &os.PathError{Op: "open", Path: path.Join(root.Name(), name), Err: err}
		}
	}
}
