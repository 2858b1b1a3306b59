package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/podvisor/podvisor/vmi"
)

// headBytes is the part of an image in which its format is recognised.
const headBytes = qcow2V3Bytes

// MaxBytes is the size of the largest disk that is accepted, whether it is in an
// image or made: 1 PiB.
const MaxBytes = vmi.MaxDiskBytes

// foreign are the formats that are recognised only to be refused: taken for raw,
// the guest could not read the disk.
var foreign = []struct{ magic, name string }{
	{"KDMV", "VMDK"}, {"COWD", "VMDK"}, {"# Disk DescriptorFile", "VMDK"}, {"vhdxfile", "VHDX"}, {"conectix", "VHD"},
	{"<<< ", "VDI"}, {"QED\x00", "QED"}, {"LUKS\xba\xbe", "LUKS"},
	{"WithoutFreeSpace", "Parallels"}, {"WithouFreSpacExt", "Parallels"},
	{"Bochs Virtual HD Image", "Bochs"}, {"#!/bin/sh\n#V2.0 Format", "cloop"},
	{"\x1f\x8b", "gzip"}, {"\xfd7zXZ\x00", "xz"}, {"\x28\xb5\x2f\xfd", "zstd"}, {"BZh", "bzip2"},
}

// Inspect reads the format of an image and the size of the disk in it, from the
// first bytes of the image. size is that of the image. The path of what it returns
// is empty. An image that is not self-contained, whose header contradicts itself or
// the size, or of a format other than raw and qcow2, is an error that wraps
// [vmi.ErrInvalid].
//
// Inspect reads at most 1 kB and takes no more memory than that, whatever the image
// says about itself. Package internal/storage/image runs it in a process of its own with limits.
func Inspect(r io.ReaderAt, size int64) (Image, error) {
	head := make([]byte, headBytes)
	n, err := r.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return Image{}, err
	}
	if bytes.HasPrefix(head[:n], []byte("QFI\xfb")) {
		return qcow2(r, head[:n], size)
	}
	for _, f := range foreign {
		if bytes.HasPrefix(head[:n], []byte(f.magic)) {
			return Image{}, fmt.Errorf("the image is in format %s; only raw and qcow2 can be used: %w", f.name, vmi.ErrInvalid)
		}
	}
	return checked(Image{Format: Raw, SizeBytes: size})
}

func checked(i Image) (Image, error) {
	if i.SizeBytes <= 0 || i.SizeBytes > MaxBytes {
		return Image{}, fmt.Errorf("the disk in the image has %d bytes: %w", i.SizeBytes, vmi.ErrInvalid)
	}
	return i, nil
}
