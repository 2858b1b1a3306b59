package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/podvisor/podvisor/storage"
)

// disk is what a file has been found to be.
type disk struct {
	// kind is qcow2, raw or ISO.
	kind string
	// file is the name in the image.
	file string
	// sizeBytes is the size that a guest sees.
	sizeBytes int64
}

const (
	// headBytes is the part of a file that is looked at.
	headBytes = 68 << 10
	// sector is the size that a disk is a multiple of.
	sector = 512
)

// mark is how a content is recognised.
type mark struct {
	name  string
	at    int
	bytes string
}

// The marks of what a firmware or a guest finds on a disk.
var (
	isoMark   = mark{"an ISO 9660 file system", 32769, "CD001"}
	bootMark  = mark{"a boot sector", 510, "\x55\xaa"}
	diskMarks = []mark{isoMark, bootMark, {"GPT", 512, "EFI PART"}, {"GPT", 4096, "EFI PART"}, {"ext4", 1080, "\x53\xef"}, {"XFS", 0, "XFSB"}, {"btrfs", 65600, "_BHRfS_M"},
		{"LVM", 512, "LABELONE"}, {"F2FS", 1024, "\x10\x20\xf5\xf2"}, {"squashfs", 0, "hsqs"}, {"swap", 4086, "SWAPSPACE2"}}
	otherMarks = []mark{{"a tar archive, such as an OVA: unpack the disk out of it", 257, "ustar"},
		{"a ZIP archive: unpack it", 0, "PK\x03\x04"}, {"a 7z archive: unpack it", 0, "7z\xbc\xaf\x27\x1c"},
		{"an lz4 archive: unpack it", 0, "\x04\x22\x4d\x18"}, {"a program", 0, "\x7fELF"}}
	// tailMarks are at the end of the file, as many bytes before it.
	tailMarks = []mark{{"VHD", 512, "conectix"}, {"VHD", 511, "conectix"}, {"DMG", 512, "koly"}}
)

func (m mark) in(head []byte) bool {
	return len(head) >= m.at+len(m.bytes) && string(head[m.at:m.at+len(m.bytes)]) == m.bytes
}

// inspect says what the file is. What a launcher would refuse, and what no firmware
// or guest could use, is an error that says what to do. anyRaw accepts a raw image
// in which nothing is recognised.
func inspect(r io.ReaderAt, size int64, anyRaw bool) (disk, error) {
	if size == 0 {
		return disk{}, errors.New("the file is empty")
	}
	image, err := storage.Inspect(r, size)
	if err != nil {
		return disk{}, fmt.Errorf("%w%s", err, advice)
	}
	head := make([]byte, headBytes)
	n, err := r.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return disk{}, err
	}
	head = head[:n]
	if image.Format == storage.QCOW2 {
		return disk{"qcow2", "disk.qcow2", image.SizeBytes}, inspectQCOW2(head)
	}
	d := disk{"raw", "disk.raw", size}
	if isoMark.in(head) {
		d = disk{"ISO", "disk.iso", size}
	}
	if err := inspectRaw(r, head, size); err != nil || anyRaw {
		return d, err
	}
	if !slices.ContainsFunc(diskMarks, func(m mark) bool { return m.in(head) }) {
		return disk{}, errors.New("no partition table and no file system is found in it, so it may be no disk; with -raw it is packed all the same")
	}
	return d, nil
}

const advice = "; qemu-img convert -O qcow2 makes a self-contained image of most formats"

// inspectQCOW2 looks for the mark of a damaged image, and for another format in the
// header's cluster, which some programs would take the file for.
func inspectQCOW2(head []byte) error {
	// https://gitlab.com/qemu-project/qemu/-/blob/master/docs/interop/qcow2.rst
	const corrupt = 1 << 1
	if version := binary.BigEndian.Uint32(head[4:]); version == 3 && binary.BigEndian.Uint64(head[72:])&corrupt != 0 {
		return errors.New("the qcow2 image is marked as corrupt: see qemu-img check")
	}
	cluster := int64(1) << binary.BigEndian.Uint32(head[20:])
	first := head[:min(int64(len(head)), cluster)]
	for _, m := range []mark{isoMark, bootMark, {"a tar archive", 257, "ustar"}} {
		if m.in(first) {
			return fmt.Errorf("the file is both a qcow2 image and %s, and programs differ in what they take it for%s", m.name, advice)
		}
	}
	return nil
}

// inspectRaw looks for what is not a disk, and for another format at the end of
// the file.
func inspectRaw(r io.ReaderAt, head []byte, size int64) error {
	for _, m := range otherMarks {
		if m.in(head) {
			return fmt.Errorf("the file is no disk but %s", m.name)
		}
	}
	if isText(head[:min(len(head), sector)]) {
		return errors.New("the file is no disk but text")
	}
	tail := make([]byte, min(size, sector))
	if _, err := r.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, m := range tailMarks {
		m.at = len(tail) - m.at
		if m.at >= 0 && m.in(tail) {
			return fmt.Errorf("the file begins as a raw image and ends as %s: which of both it is, it does not say; convert it by qemu-img convert, naming its format by -f", m.name)
		}
	}
	if size%sector != 0 {
		return fmt.Errorf("the file has %d bytes, which is no multiple of %d: it is no disk, or not complete", size, sector)
	}
	return nil
}

// isText says that all of the bytes are of text.
func isText(b []byte) bool {
	s := strings.ToValidUTF8(string(b), "")
	return len(b) > 0 && len(b)-len(s) < utf8.UTFMax && !bytes.ContainsFunc([]byte(s), func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\r' && r != '\t' && r != '\f' || r == 0x7f
	})
}
