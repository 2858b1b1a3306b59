package storage_test

import (
	"fmt"

	"github.com/podvisor/podvisor/storage"
)

func ExampleAttachment_Ephemeral() {
	scratch := storage.Attachment{Name: "scratch", Path: "/scratch.qcow2", Format: storage.QCOW2, SizeBytes: 1 << 30, Source: storage.Blank{}}
	data := storage.Attachment{Name: "data", Path: "/claim/disk.img", Format: storage.Raw, SizeBytes: 1 << 30, Source: storage.Persistent{}}
	device := storage.Attachment{Name: "device", Path: "/dev/device", Format: storage.Raw}
	fmt.Println(scratch.Ephemeral(), data.Ephemeral(), device.Ephemeral())
	// Output: true false false
}
