package image

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"

	"github.com/podvisor/podvisor/storage"
)

const (
	// isoBlock is the block of an ISO 9660 file system.
	isoBlock = 2048
	// isoOverhead is more than its descriptors, tables and folders take.
	isoOverhead = 256 << 10
	// isoMultiple is what the size of the image is a multiple of: disks with
	// sectors of 4096 bytes cannot hold another one.
	isoMultiple = 4096
)

// seeded makes the image of a seed at path.
func seeded(path string, s storage.Seed) error {
	return iso(path, s.Label, func(tree string) (int64, error) {
		var size int64
		for _, f := range s.Files {
			if err := write(filepath.Join(tree, filepath.FromSlash(f.Name)), f.Content); err != nil {
				return 0, err
			}
			size += inISO(int64(len(f.Content)))
		}
		return size, nil
	})
}

// inISO is at most what a file of this size takes of an ISO 9660 file system, with its
// names.
func inISO(size int64) int64 {
	const names = 3
	return (size+isoBlock-1)/isoBlock*isoBlock + names*isoBlock
}

// iso makes an ISO 9660 file system, with the long names of both Joliet and
// Rock Ridge, at path. fill puts its files into a folder and returns what they take.
// No other user of the node reads the files or the image, also while they are made.
func iso(path, label string, fill func(tree string) (int64, error)) (err error) {
	// The name is constant because errors contain it: an error that repeats must
	// have the same text each time.
	work := path + ".new"
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(work, 0o700); err != nil {
		return err
	}
	tree, image := filepath.Join(work, "tree"), filepath.Join(work, "image")
	if err := os.Mkdir(tree, 0o755); err != nil { // the mode of the guest's root folder
		return err
	}
	size, err := fill(tree)
	if err != nil {
		return err
	}
	if err := format(image, tree, label, isoOverhead+size); err != nil {
		return fmt.Errorf("make an ISO 9660 file system: %w", err)
	}
	return os.Rename(image, path)
}

// write makes a file that every user of the guest can read, and the folders that it is
// in.
func write(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o444)
}

func format(image, tree, label string, size int64) (err error) {
	b, err := file.CreateFromPath(image, size)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := os.Chmod(image, 0o600); err != nil {
		return err
	}
	fs, err := iso9660.Create(b, size, 0, isoBlock, tree)
	if err != nil {
		return err
	}
	if err := fs.Finalize(iso9660.FinalizeOptions{RockRidge: true, Joliet: true, VolumeIdentifier: label}); err != nil {
		return err
	}
	w, err := b.Writable()
	if err != nil {
		return err
	}
	if err := joliet(w); err != nil {
		return err
	}
	// The primary volume descriptor, in block 16, counts the blocks in use.
	var blocks [4]byte
	if _, err := b.ReadAt(blocks[:], 16*isoBlock+80); err != nil {
		return err
	}
	used := int64(binary.LittleEndian.Uint32(blocks[:])) * isoBlock
	return os.Truncate(image, (used+isoMultiple-1)/isoMultiple*isoMultiple)
}
