package volume

import (
	"fmt"
	"path"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// hostDisk is a raw disk image in a folder of the node, which the pod mounts: the
// image itself may not exist yet. Nothing of Podvisor changes the owner or the mode of
// what is on the node: the folder and the image must be open to user 107.
//
// +podvisor:entry
var hostDisk = Kind{
	Name:     "hostDisk",
	Outlasts: true,
	Pod: func(v vmi.Volume, n PodNames, _ Cluster) Part {
		return Part{
			Volumes: []corev1.Volume{{Name: n.Volume, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{
				Path: path.Dir(path.Clean(v.HostDisk.Path)), Type: new(corev1.HostPathDirectory),
			}}}},
			Mounts: []corev1.VolumeMount{{Name: n.Volume, MountPath: claimDir("", v.Name)}},
		}
	},
	Observe: func(v vmi.Volume, n Node) Observation {
		return Observation{Paths: []string{hostDiskPath(n.Root, v.Name, v.HostDisk)}}
	},
	Attach: func(_ *vmi.VirtualMachineInstance, v vmi.Volume, n Node) (storage.Attachment, error) {
		a, err := hostDiskAttachment(v, n)
		if err != nil {
			return storage.Attachment{}, fmt.Errorf("%s of the node: %w", v.HostDisk.Path, err)
		}
		return a, nil
	},
}

func hostDiskAttachment(v vmi.Volume, n Node) (storage.Attachment, error) {
	d := v.HostDisk
	a := storage.Attachment{Path: hostDiskPath(n.Root, v.Name, d), Format: storage.Raw}
	switch f := n.Paths[a.Path]; {
	case !path.IsAbs(d.Path) || path.Clean(d.Path) == "/":
		return a, fmt.Errorf("hostDisk.path is not the absolute path of a file: %w", vmi.ErrInvalid)
	case f.Kind == storage.File && f.SizeBytes > 0:
		a.SizeBytes = f.SizeBytes
		return a, nil
	case f.Kind == storage.File:
		return a, fmt.Errorf("the file is empty: replace it by a raw disk image, or delete it to have one made by type DiskOrCreate: %w", vmi.ErrInvalid)
	case f.Kind != storage.Missing:
		return a, fmt.Errorf("it is a %s and must be a file with a raw disk image: %w", f.Kind, vmi.ErrInvalid)
	case d.Type != vmi.HostDiskExistsOrCreate:
		return a, fmt.Errorf("there is no such file: put a raw disk image there, or use type DiskOrCreate: %w", vmi.ErrInvalid)
	case d.Capacity == nil || d.Capacity.Sign() <= 0 || d.Capacity.CmpInt64(storage.MaxBytes) > 0:
		return a, fmt.Errorf("there is no such file, and hostDisk.capacity is not above 0 and at most 1Pi: %w", vmi.ErrInvalid)
	}
	a.SizeBytes, a.Source = roundUp(d.Capacity.Value()), storage.Persistent{}
	return a, nil
}

// hostDiskPath is the disk image in the folder of the node that is mounted where the
// file system of a claim would be.
func hostDiskPath(root, volume string, d *vmi.HostDisk) string {
	return path.Join(claimDir(root, volume), path.Base(d.Path))
}
