package volume

import (
	"errors"
	"fmt"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// persistentVolumeClaim is a disk in a claim: the device of a claim in block mode, or
// the file disk.img of one with a file system.
//
// +podvisor:entry
var persistentVolumeClaim = claimKind("persistentVolumeClaim", func(v vmi.Volume) Claim {
	return Claim{Name: v.PersistentVolumeClaim.ClaimName, ReadOnly: v.PersistentVolumeClaim.ReadOnly}
})

// dataVolume is the same in the claim that has the name of a DataVolume.
//
// +podvisor:entry
var dataVolume = claimKind("dataVolume", func(v vmi.Volume) Claim { return Claim{Name: v.DataVolume.Name} })

// Claim is the claim that a volume is in.
type Claim struct {
	// Name is the name of the claim in the namespace of the VMI.
	Name string
	// ReadOnly says that nothing writes to the claim.
	ReadOnly bool
}

func claimKind(name string, of func(vmi.Volume) Claim) Kind {
	return Kind{
		Name: name, Migratable: true, Hotpluggable: true, Outlasts: true,
		Claim: of,
		Pod:   func(v vmi.Volume, n PodNames, c Cluster) Part { return of(v).pod(v, n, c) },
		Observe: func(v vmi.Volume, n Node) Observation {
			return Observation{Paths: []string{claimDir(n.Root, v.Name), claimFile(n.Root, v.Name), devicePath(n.Root, v.Name)}}
		},
		Attach: func(instance *vmi.VirtualMachineInstance, v vmi.Volume, n Node) (storage.Attachment, error) {
			a, err := of(v).attach(instance, v, n)
			if err != nil {
				return storage.Attachment{}, fmt.Errorf("claim %s: %w", of(v).Name, err)
			}
			return a, nil
		},
	}
}

// pod mounts the claim. One whose mode is not known has a file system, which is
// Kubernetes' default.
func (c Claim) pod(v vmi.Volume, n PodNames, k Cluster) Part {
	p := Part{Volumes: []corev1.Volume{{Name: n.Volume, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.Name, ReadOnly: c.ReadOnly},
	}}}}
	if found := k.Claims[c.Name]; found != nil && found.Spec.VolumeMode != nil && *found.Spec.VolumeMode == corev1.PersistentVolumeBlock {
		p.Devices = []corev1.VolumeDevice{{Name: n.Volume, DevicePath: devicePath("", v.Name)}}
		return p
	}
	p.Mounts = []corev1.VolumeMount{{Name: n.Volume, MountPath: claimDir("", v.Name), ReadOnly: c.ReadOnly}}
	return p
}

// attach attaches what the claim is in the pod. It is always raw: its format could be
// read only from what a guest has written.
func (c Claim) attach(instance *vmi.VirtualMachineInstance, v vmi.Volume, n Node) (storage.Attachment, error) {
	dir, device := n.Paths[claimDir(n.Root, v.Name)], n.Paths[devicePath(n.Root, v.Name)]
	switch {
	case dir.Kind == storage.Directory:
		return c.file(v, n, infoOf(instance, v.Name))
	case device.Kind == storage.BlockDevice && device.SizeBytes > 0:
		return storage.Attachment{Path: devicePath(n.Root, v.Name), Format: storage.Raw, SizeBytes: device.SizeBytes, ReadOnly: c.ReadOnly}, nil
	case device.Kind == storage.BlockDevice:
		return storage.Attachment{}, errors.New("its device has a size of 0 bytes")
	}
	return storage.Attachment{}, fmt.Errorf("neither its file system is at %s nor its device at %s", claimDir(n.Root, v.Name), devicePath(n.Root, v.Name))
}

// file attaches the image in a claim with a file system. An image is made if there is
// none.
func (c Claim) file(v vmi.Volume, n Node, info *vmi.PersistentVolumeClaimInfo) (storage.Attachment, error) {
	a := storage.Attachment{Path: claimFile(n.Root, v.Name), Format: storage.Raw, ReadOnly: c.ReadOnly}
	switch f := n.Paths[a.Path]; {
	case f.Kind == storage.File && f.SizeBytes > 0:
		a.SizeBytes = f.SizeBytes
		if c.ReadOnly {
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
	case c.ReadOnly:
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
		if err != nil || k.Claim == nil {
			continue
		}
		c := k.Claim(v)
		first, ok := in[c.Name]
		in[c.Name] = v
		if !ok {
			continue
		}
		if before, _ := all.of(first); c.ReadOnly && before.Claim(first).ReadOnly {
			continue
		}
		faults = append(faults, fmt.Errorf("volume %s: claim %s is that of volume %s too: leave one of the volumes out: %w", v.Name, c.Name, first.Name, vmi.ErrInvalid))
	}
	return errors.Join(faults...)
}

// diskFile is the disk image in a claim with a file system.
const diskFile = "disk.img"

// claimDir is the mount of a claim with a file system.
func claimDir(root, volume string) string {
	return path.Join(root, vmi.PrivateDir, "vmi-disks", volume)
}

// claimFile is the disk image in a claim with a file system.
func claimFile(root, volume string) string { return path.Join(claimDir(root, volume), diskFile) }

// ownDevices are what containers have in /dev without any claim.
var ownDevices = []string{"console", "core", "fd", "full", "kvm", "mqueue", "net", "null", "ptmx", "pts", "random", "shm", "stderr",
	"stdin", "stdout", "tty", "urandom", "vhost-net", "vhost-vsock", "zero"}

// devicePath is the device of a claim in block mode. The name of a volume has no dot.
func devicePath(root, volume string) string {
	if slices.Contains(ownDevices, volume) {
		volume = "volume." + volume
	}
	return path.Join(root, "/dev", volume)
}
