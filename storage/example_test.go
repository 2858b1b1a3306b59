package storage_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// A container disk becomes what QEMU opens: its image is inspected, and the guest
// writes to an overlay, which is lost with the pod.
func Example() {
	disk := make([]byte, 1<<20) // as it is read from the container disk
	base, err := storage.Inspect(bytes.NewReader(disk), int64(len(disk)))
	if err != nil {
		fmt.Println(err)
		return
	}
	base.Path = "/container-disks/root/disk/disk.img"
	root := storage.Attachment{
		Name: "root", Path: "/ephemeral-disks/root.qcow2", Format: storage.QCOW2, SizeBytes: base.SizeBytes,
		Source: storage.Overlay{Base: base},
	}
	fmt.Println(root.Format, "over", base.Format, "of", root.SizeBytes, "bytes; ephemeral:", root.Ephemeral())
	// Output: qcow2 over raw of 1048576 bytes; ephemeral: true
}

func ExampleInspect() {
	qcow2 := make([]byte, 4<<16) // as qemu-img create makes it: a header, refcounts, an L1 table
	copy(qcow2, "QFI\xfb\x00\x00\x00\x03")
	binary.BigEndian.PutUint32(qcow2[20:], 16) // clusters of 2^16 bytes
	binary.BigEndian.PutUint64(qcow2[24:], 10<<30)
	binary.BigEndian.PutUint32(qcow2[36:], 20)
	binary.BigEndian.PutUint64(qcow2[40:], 3<<16)
	binary.BigEndian.PutUint64(qcow2[48:], 1<<16)
	binary.BigEndian.PutUint32(qcow2[56:], 1)
	binary.BigEndian.PutUint32(qcow2[100:], 104)
	i, err := storage.Inspect(bytes.NewReader(qcow2), int64(len(qcow2)))
	fmt.Println(i.Format, i.SizeBytes>>30, "GiB", err)

	binary.BigEndian.PutUint64(qcow2[8:], 512) // where the name of a backing file is
	_, err = storage.Inspect(bytes.NewReader(qcow2), int64(len(qcow2)))
	fmt.Println(errors.Is(err, vmi.ErrInvalid), err)
	// Output:
	// qcow2 10 GiB <nil>
	// true the qcow2 image has a backing file; a disk image must be self-contained: invalid
}

func ExampleAttachment_Ephemeral() {
	scratch := storage.Attachment{Name: "scratch", Path: "/scratch.qcow2", Format: storage.QCOW2, SizeBytes: 1 << 30, Source: storage.Blank{}}
	data := storage.Attachment{Name: "data", Path: "/claim/disk.img", Format: storage.Raw, SizeBytes: 1 << 30, Source: storage.Persistent{}}
	device := storage.Attachment{Name: "device", Path: "/dev/device", Format: storage.Raw}
	fmt.Println(scratch.Ephemeral(), data.Ephemeral(), device.Ephemeral())
	// Output: true false false
}
