package volume

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// persistentVolumeClaim is a disk in a claim: the device of a claim in block mode, or
// the file disk.img of one with a file system.
var persistentVolumeClaim = claimKind("persistentVolumeClaim", func(v vmi.Volume) claim {
	return claim{name: v.PersistentVolumeClaim.ClaimName, readOnly: v.PersistentVolumeClaim.ReadOnly}
})

// dataVolume is the same in the claim that has the name of a DataVolume.
var dataVolume = claimKind("dataVolume", func(v vmi.Volume) claim { return claim{name: v.DataVolume.Name} })

// claim is the claim of a volume.
type claim struct {
	name     string
	readOnly bool
}

func claimKind(name string, of func(vmi.Volume) claim) kind {
	return kind{
		name: name, shares: true,
		claim: of,
		pod:   func(v vmi.Volume, n names, c Cluster) Part { return of(v).pod(v, n, c) },
		observe: func(v vmi.Volume, n Node) Observation {
			return Observation{Paths: []string{claimDir(n.Root, v.Name), claimFile(n.Root, v.Name), devicePath(n.Root, v.Name)}}
		},
		attach: func(instance *vmi.VirtualMachineInstance, v vmi.Volume, n Node) (storage.Attachment, error) {
			a, err := of(v).attach(instance, v, n)
			if err != nil {
				return storage.Attachment{}, fmt.Errorf("claim %s: %w", of(v).name, err)
			}
			return a, nil
		},
	}
}

// pod mounts the claim. One whose mode is not known has a file system, which is
// Kubernetes' default.
func (c claim) pod(v vmi.Volume, n names, k Cluster) Part {
	p := Part{Volumes: []corev1.Volume{{Name: n.volume, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.name, ReadOnly: c.readOnly},
	}}}}
	if found := k.Claims[c.name]; found != nil && found.Spec.VolumeMode != nil && *found.Spec.VolumeMode == corev1.PersistentVolumeBlock {
		p.Devices = []corev1.VolumeDevice{{Name: n.volume, DevicePath: devicePath("", v.Name)}}
		return p
	}
	p.Mounts = []corev1.VolumeMount{{Name: n.volume, MountPath: claimDir("", v.Name), ReadOnly: c.readOnly}}
	return p
}

// attach attaches what the claim is in the pod. It is always raw: its format could be
// read only from what a guest has written.
func (c claim) attach(instance *vmi.VirtualMachineInstance, v vmi.Volume, n Node) (storage.Attachment, error) {
	dir, device := n.Paths[claimDir(n.Root, v.Name)], n.Paths[devicePath(n.Root, v.Name)]
	switch {
	case dir.Kind == storage.Directory:
		return c.file(v, n, infoOf(instance, v.Name))
	case device.Kind == storage.BlockDevice && device.SizeBytes > 0:
		return storage.Attachment{Path: devicePath(n.Root, v.Name), Format: storage.Raw, SizeBytes: device.SizeBytes, ReadOnly: c.readOnly}, nil
	case device.Kind == storage.BlockDevice:
		return storage.Attachment{}, errors.New("its device has a size of 0 bytes")
	}
	return storage.Attachment{}, fmt.Errorf("neither its file system is at %s nor its device at %s", claimDir(n.Root, v.Name), devicePath(n.Root, v.Name))
}

// file attaches the image in a claim with a file system. An image is made if there is
// none.
func (c claim) file(v vmi.Volume, n Node, info *vmi.PersistentVolumeClaimInfo) (storage.Attachment, error) {
	a := storage.Attachment{Path: claimFile(n.Root, v.Name), Format: storage.Raw, ReadOnly: c.readOnly}
	switch f := n.Paths[a.Path]; {
	case f.Kind == storage.File && f.SizeBytes > 0:
		a.SizeBytes = f.SizeBytes
		if c.readOnly {
			return a, nil
		}
		if size := n.Space.grown(f, info, n.Paths[claimDir(n.Root, v.Name)].FreeBytes); size > a.SizeBytes {
			a.SizeBytes, a.Source = size, storage.Grown{}
		}
		return a, n.Space.tooLarge(f.SizeBytes, info)
	case f.Kind == storage.File:
		return a, fmt.Errorf("%s in it is empty: replace it by a raw disk image, or delete it to have one made: %w", diskFile, vmi.ErrInvalid)
	case f.Kind != storage.Missing:
		return a, fmt.Errorf("%s in it is a %s and must be a file with a raw disk image: %w", diskFile, f.Kind, vmi.ErrInvalid)
	case c.readOnly:
		return a, fmt.Errorf("it is only read and has no file %s: put a raw disk image there: %w", diskFile, vmi.ErrInvalid)
	case info == nil:
		return a, errors.New("its size is not known, so no disk is made in it")
	}
	size, err := n.Space.newSize(info, n.Paths[claimDir(n.Root, v.Name)].FreeBytes)
	a.SizeBytes, a.Source = size, storage.Persistent{}
	return a, err
}

// infoOf is what the status says about the claim of the volume. Nil: nothing.
func infoOf(instance *vmi.VirtualMachineInstance, volume string) *vmi.PersistentVolumeClaimInfo {
	i := slices.IndexFunc(instance.Status.VolumeStatus, func(s vmi.VolumeStatus) bool { return s.Name == volume })
	if i < 0 {
		return nil
	}
	return instance.Status.VolumeStatus[i].PersistentVolumeClaimInfo
}

// twice is the fault of volumes in the same claim: each would be a disk of its own
// with the same content, and what is written to one would destroy the other.
func (all kinds) twice(volumes []vmi.Volume) error {
	in := map[string]vmi.Volume{}
	var faults []error
	for _, v := range volumes {
		k, err := all.of(v)
		if err != nil || k.claim == nil {
			continue
		}
		c := k.claim(v)
		first, ok := in[c.name]
		in[c.name] = v
		if !ok {
			continue
		}
		if before, _ := all.of(first); c.readOnly && before.claim(first).readOnly {
			continue
		}
		faults = append(faults, fmt.Errorf("volume %s: claim %s is that of volume %s too: leave one of the volumes out: %w", v.Name, c.name, first.Name, vmi.ErrInvalid))
	}
	return errors.Join(faults...)
}
