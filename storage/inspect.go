package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/podvisor/podvisor/vmi"
)

// headerBytes is the part of a qcow2 file that Inspect reads: the header of
// version 3 without its extensions.
const headerBytes = 104

// maxBytes is the largest disk that is accepted.
const maxBytes = 1 << 50

// foreign are the formats that are recognised only to be refused: taken for raw,
// the guest could not read the disk.
var foreign = []struct{ magic, name string }{
	{"KDMV", "VMDK"}, {"# Disk DescriptorFile", "VMDK"}, {"vhdxfile", "VHDX"}, {"conectix", "VHD"},
	{"<<< ", "VDI"}, {"QED\x00", "QED"}, {"LUKS\xba\xbe", "LUKS"},
	{"\x1f\x8b", "gzip"}, {"\xfd7zXZ\x00", "xz"}, {"\x28\xb5\x2f\xfd", "zstd"}, {"BZh", "bzip2"},
}

// Inspect reads the format of an image and the size of the disk in it, from the
// first bytes of the image. size is that of the image. The path of what it returns
// is empty. An image that is not self-contained, or of a format other than raw and
// qcow2, is an error that wraps [vmi.ErrInvalid].
func Inspect(r io.ReaderAt, size int64) (Image, error) {
	head := make([]byte, headerBytes)
	n, err := r.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return Image{}, err
	}
	if bytes.HasPrefix(head[:n], []byte("QFI\xfb")) {
		return qcow2(head, n)
	}
	for _, f := range foreign {
		if bytes.HasPrefix(head[:n], []byte(f.magic)) {
			return Image{}, fmt.Errorf("the image is in format %s; only raw and qcow2 can be used: %w", f.name, vmi.ErrInvalid)
		}
	}
	return checked(Image{Format: Raw, SizeBytes: size})
}

// qcow2 reads the header of a qcow2 image, of which n bytes are there.
// https://gitlab.com/qemu-project/qemu/-/blob/master/docs/interop/qcow2.rst
func qcow2(head []byte, n int) (Image, error) {
	invalid := func(format string, args ...any) (Image, error) {
		return Image{}, fmt.Errorf("the qcow2 image "+format+": %w", append(args, vmi.ErrInvalid)...)
	}
	const v2Bytes = 72
	version := binary.BigEndian.Uint32(head[4:])
	switch {
	case n < v2Bytes || version == 3 && n < headerBytes:
		return invalid("ends within its header")
	case version != 2 && version != 3:
		return invalid("is of version %d; 2 and 3 can be used", version)
	case binary.BigEndian.Uint64(head[8:]) != 0:
		return invalid("has a backing file; a container disk must be self-contained")
	case binary.BigEndian.Uint32(head[32:]) != 0:
		return invalid("is encrypted")
	}
	const externalData = 1 << 2
	if version == 3 && binary.BigEndian.Uint64(head[72:])&externalData != 0 {
		return invalid("keeps its data in another file; a container disk must be self-contained")
	}
	size := binary.BigEndian.Uint64(head[24:])
	if size > maxBytes {
		return invalid("has a disk of %d bytes; at most %d are accepted", size, int64(maxBytes))
	}
	return checked(Image{Format: QCOW2, SizeBytes: int64(size)})
}

func checked(i Image) (Image, error) {
	if i.SizeBytes <= 0 || i.SizeBytes > maxBytes {
		return Image{}, fmt.Errorf("the disk in the image has %d bytes: %w", i.SizeBytes, vmi.ErrInvalid)
	}
	return i, nil
}
