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

// iso makes an ISO 9660 file system, with the long names of both Joliet and
// Rock Ridge, at path.
func iso(path string, s storage.Seed) (err error) {
	// The name is constant because errors contain it: an error that repeats must
	// have the same text each time.
	work := path + ".new"
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	tree, image := filepath.Join(work, "tree"), filepath.Join(work, "image")
	if err := os.MkdirAll(tree, 0o755); err != nil { // and the folder of path
		return err
	}
	size := int64(isoOverhead)
	for _, f := range s.Files {
		if err := write(filepath.Join(tree, filepath.FromSlash(f.Name)), f.Content); err != nil {
			return err
		}
		size += int64(len(f.Content)+isoBlock-1) / isoBlock * isoBlock
	}
	if err := format(image, tree, s.Label, size); err != nil {
		return fmt.Errorf("make an ISO 9660 file system: %w", err)
	}
	return os.Rename(image, path)
}

// write makes a file, and the folders that it is in.
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
	fs, err := iso9660.Create(b, size, 0, isoBlock, tree)
	if err != nil {
		return err
	}
	if err := fs.Finalize(iso9660.FinalizeOptions{RockRidge: true, Joliet: true, VolumeIdentifier: label}); err != nil {
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
