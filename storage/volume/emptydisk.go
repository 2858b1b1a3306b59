package volume

import (
	"fmt"
	"path"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// emptyDisk is an empty disk that is lost with the pod.
//
// +podvisor:entry
var emptyDisk = Kind{
	Name:       "emptyDisk",
	Migratable: true,
	Attach: func(_ *vmi.VirtualMachineInstance, v vmi.Volume, n Node) (storage.Attachment, error) {
		size := v.EmptyDisk.Capacity.Value()
		if size <= 0 || size > storage.MaxBytes {
			return storage.Attachment{}, fmt.Errorf("capacity %s is not above 0 and at most 1Pi: %w", v.EmptyDisk.Capacity.String(), vmi.ErrInvalid)
		}
		return storage.Attachment{
			Path:      emptyDiskPath(n.Root, v.Name),
			Format:    storage.QCOW2,
			SizeBytes: roundUp(size),
			Source:    storage.Blank{},
		}, nil
	},
}

// emptyDiskPath is the file of an empty disk.
func emptyDiskPath(root, volume string) string {
	return path.Join(ephemeralDir(root), "empty-disks", volume+".qcow2")
}
