package storage

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/podvisor/podvisor/vmi"
)

// The limits of QEMU for a qcow2 image. Each table is read into memory when the
// image is opened.
const (
	minClusterBits       = 9
	maxClusterBits       = 21
	maxL1Bytes           = 32 << 20
	maxRefcountTableSize = 8 << 20
	maxSnapshots         = 1 << 16
)

// maxExtensions is how many extensions of a header are read. QEMU writes at most 5.
const maxExtensions = 64

// The incompatible features of a qcow2 image.
const (
	featureDataFile = 1 << 2
	featureL2       = 1 << 4
	// knownFeatures: dirty, corrupt, data file, compression type, extended L2.
	knownFeatures = 1<<5 - 1
)

// The types of the extensions of a qcow2 header that are looked at.
const (
	extensionEnd      = 0
	extensionDataFile = 0x44415441
)

// qcow2Header is the header of a qcow2 image, in the order of its bytes. Version 2
// ends before Incompatible.
// https://gitlab.com/qemu-project/qemu/-/blob/master/docs/interop/qcow2.rst
type qcow2Header struct {
	Magic                 uint32
	Version               uint32
	BackingOffset         uint64
	BackingBytes          uint32
	ClusterBits           uint32
	Size                  uint64
	Encryption            uint32
	L1Entries             uint32
	L1Offset              uint64
	RefcountTableOffset   uint64
	RefcountTableClusters uint32
	Snapshots             uint32
	SnapshotsOffset       uint64

	Incompatible, Compatible, Autoclear uint64
	RefcountOrder, HeaderBytes          uint32
}

const (
	qcow2V2Bytes = 72
	qcow2V3Bytes = 104
)

// qcow2 reads the header of a qcow2 image of size bytes. head are its first bytes.
func qcow2(r io.ReaderAt, head []byte, size int64) (Image, error) {
	invalid := func(format string, args ...any) (Image, error) {
		return Image{}, fmt.Errorf("the qcow2 image "+format+": %w", append(args, vmi.ErrInvalid)...)
	}
	padded := make([]byte, qcow2V3Bytes)
	n := copy(padded, head)
	var h qcow2Header
	if _, err := binary.Decode(padded, binary.BigEndian, &h); err != nil {
		return Image{}, err
	}
	switch {
	case n < qcow2V2Bytes || h.Version == 3 && n < qcow2V3Bytes:
		return invalid("ends within its header")
	case h.Version != 2 && h.Version != 3:
		return invalid("is of version %d; 2 and 3 can be used", h.Version)
	case h.Version == 2: // what follows is not part of the header
		h.Incompatible, h.HeaderBytes = 0, qcow2V2Bytes
	}
	if fault := cmp.Or(h.refers(), h.contradicts(size)); fault != "" {
		return invalid("%s", fault)
	}
	fault, err := h.extensions(r)
	if err != nil {
		return Image{}, err
	}
	if fault != "" {
		return invalid("%s", fault)
	}
	return checked(Image{Format: QCOW2, SizeBytes: int64(h.Size)})
}

// refers says what the image needs besides its own file. Empty: nothing.
func (h qcow2Header) refers() string {
	switch {
	case h.BackingOffset != 0 || h.BackingBytes != 0:
		return "has a backing file; a disk image must be self-contained"
	case h.Encryption != 0:
		return "is encrypted"
	case h.Incompatible&featureDataFile != 0:
		return "keeps its data in another file; a disk image must be self-contained"
	case h.Incompatible&^knownFeatures != 0:
		return fmt.Sprintf("needs features that are not known (%#x)", h.Incompatible&^knownFeatures)
	}
	return ""
}

// contradicts says what of the header cannot be in a file of size bytes, or is
// beyond the limits of QEMU. Empty: nothing.
func (h qcow2Header) contradicts(size int64) string {
	if h.ClusterBits < minClusterBits || h.ClusterBits > maxClusterBits {
		return fmt.Sprintf("has clusters of 2^%d bytes; 2^%d to 2^%d are possible", h.ClusterBits, minClusterBits, maxClusterBits)
	}
	cluster := uint64(1) << h.ClusterBits
	l1, refcounts := uint64(h.L1Entries)*8, uint64(h.RefcountTableClusters)*cluster
	switch {
	case h.HeaderBytes < qcow2V2Bytes || h.Version == 3 && h.HeaderBytes < qcow2V3Bytes || uint64(h.HeaderBytes) > cluster:
		return fmt.Sprintf("has a header of %d bytes", h.HeaderBytes)
	case h.Size > MaxBytes:
		return fmt.Sprintf("has a disk of %d bytes; at most %d are accepted", h.Size, int64(MaxBytes))
	case l1 > maxL1Bytes:
		return fmt.Sprintf("has an L1 table of %d bytes; at most %d are accepted", l1, maxL1Bytes)
	case uint64(h.L1Entries) < h.neededL1():
		return fmt.Sprintf("has an L1 table of %d entries, which is too small for a disk of %d bytes", h.L1Entries, h.Size)
	case !h.places(h.L1Offset, l1, size):
		return "is not complete: its L1 table is beyond the end of the file"
	case refcounts == 0 || refcounts > maxRefcountTableSize:
		return fmt.Sprintf("has a table of reference counts of %d bytes; 1 to %d are accepted", refcounts, maxRefcountTableSize)
	case !h.places(h.RefcountTableOffset, refcounts, size):
		return "is not complete: its table of reference counts is beyond the end of the file"
	case h.Snapshots > maxSnapshots:
		return fmt.Sprintf("has %d snapshots; at most %d are accepted", h.Snapshots, maxSnapshots)
	case h.Snapshots > 0 && !h.places(h.SnapshotsOffset, uint64(h.Snapshots)*minSnapshotBytes, size):
		return "is not complete: its table of snapshots is beyond the end of the file"
	}
	return ""
}

// minSnapshotBytes is the smallest entry of the snapshot table.
const minSnapshotBytes = 40

// neededL1 is how many entries the L1 table must have.
func (h qcow2Header) neededL1() uint64 {
	bits := 2*h.ClusterBits - 3 // of a cluster with entries of 8 bytes
	if h.Incompatible&featureL2 != 0 {
		bits--
	}
	return (h.Size + 1<<bits - 1) >> bits
}

// places says that a table of length bytes at offset begins with a cluster after the
// header, and is in a file of size bytes.
func (h qcow2Header) places(offset, length uint64, size int64) bool {
	return offset != 0 && offset%(1<<h.ClusterBits) == 0 && offset <= uint64(size) && length <= uint64(size)-offset
}

// extensions reads the heads of the header's extensions, never their content, and
// says what is wrong with one. Empty: nothing.
func (h qcow2Header) extensions(r io.ReaderAt) (string, error) {
	at, end := int64(h.HeaderBytes), int64(1)<<h.ClusterBits
	for range maxExtensions {
		if at+8 > end {
			return "", nil
		}
		var head [8]byte
		if _, err := r.ReadAt(head[:], at); errors.Is(err, io.EOF) {
			return "ends within its header", nil
		} else if err != nil {
			return "", err
		}
		kind, length := binary.BigEndian.Uint32(head[:]), int64(binary.BigEndian.Uint32(head[4:]))
		at += 8
		switch {
		case kind == extensionEnd:
			return "", nil
		case kind == extensionDataFile:
			return "names another file for its data; a disk image must be self-contained", nil
		case length > end-at:
			return fmt.Sprintf("has an extension of its header of %d bytes, which is beyond its header", length), nil
		}
		at += (length + 7) &^ 7
	}
	return fmt.Sprintf("has more than %d extensions of its header", maxExtensions), nil
}
