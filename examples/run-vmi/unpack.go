package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Limits of what is unpacked of an image, whoever made it.
const (
	maxBytes = 1 << 40 // of all layers
	maxDisks = 10      // in /disk
)

// unpacker takes the disk out of a container image in an archive.
type unpacker struct {
	reference string
	arch      string // of the guest, as in GOARCH
	file      string // the path of the disk in the image; empty: all files in /disk
	dir       string // is made, and gets the disk
}

// unpack reads the archive: docker save, or an OCI layout.
func (u unpacker) unpack(ctx context.Context, f io.ReaderAt) error {
	a := archive{file: f, arch: u.arch}
	if err := a.index(); err != nil {
		return err
	}
	layers, err := a.layers(u.reference)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(u.dir, 0o700); err != nil {
		return err
	}
	left := int64(maxBytes)
	for _, name := range layers {
		r, err := a.layer(name)
		if err == nil {
			limited := &io.LimitedReader{R: r, N: left}
			if err = u.layer(ctx, tar.NewReader(limited)); limited.N == 0 {
				err = fmt.Errorf("it is larger than %d bytes: %w", int64(maxBytes), err)
			}
			left = limited.N
		}
		if err != nil {
			return fmt.Errorf("layer %s: %w", name, err)
		}
	}
	return nil
}

// layer takes the disk out of a layer, in which whiteouts remove those of the layers
// before.
func (u unpacker) layer(ctx context.Context, r *tar.Reader) error {
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
		dir, base := path.Split(name)
		switch removed, is := strings.CutPrefix(base, ".wh."); {
		case is && removed == ".wh..opq":
			err = u.remove(dir + "*")
		case is:
			err = errors.Join(u.remove(dir+removed), u.remove(dir+removed+"/*"))
		case u.wants(name) && h.Typeflag == tar.TypeReg:
			err = u.write(base, r, h.Size)
		case u.wants(name):
			err = fmt.Errorf("/%s is no regular file", name)
		}
		if err != nil {
			return err
		}
	}
}

// wants says that the file of the image is a disk.
func (u unpacker) wants(name string) bool {
	if u.file != "" {
		return name == strings.TrimPrefix(path.Clean("/"+u.file), "/")
	}
	return path.Dir(name) == "disk"
}

// remove removes the disks whose names in the image match the pattern, which has no
// wildcard but a last *.
func (u unpacker) remove(pattern string) error {
	dir := "disk"
	if u.file != "" {
		dir = path.Dir(strings.TrimPrefix(path.Clean("/"+u.file), "/"))
	}
	entries, err := os.ReadDir(u.dir)
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if all, is := strings.CutSuffix(pattern, "*"); name == pattern || is && strings.HasPrefix(name, all) {
			err = errors.Join(err, os.Remove(filepath.Join(u.dir, e.Name())))
		}
	}
	return err
}

// write writes a disk without its zeros.
func (u unpacker) write(name string, r io.Reader, size int64) (err error) {
	entries, err := os.ReadDir(u.dir)
	if err != nil {
		return err
	}
	if len(entries) >= maxDisks {
		return fmt.Errorf("it has more than %d disks", maxDisks)
	}
	// The name is one element, and the folder is this program's alone.
	f, err := os.Create(filepath.Join(u.dir, name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	const block = 64 << 10
	zeros, b := make([]byte, block), make([]byte, block)
	for at := int64(0); at < size; {
		n, err := io.ReadFull(r, b[:min(block, size-at)])
		if err != nil {
			return err
		}
		if !bytes.Equal(b[:n], zeros[:n]) {
			if _, err := f.WriteAt(b[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
	}
	return f.Truncate(size)
}
