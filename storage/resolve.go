package storage

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/podvisor/podvisor/storage/cloudinit"
	"github.com/podvisor/podvisor/vmi"
)

// sector is the size that a guest's disk is a multiple of.
const sector = 512

// Place says where the disks of a machine are made.
type Place struct {
	// EphemeralDisks is the folder of the disks that are lost when the machine
	// ends. Default: [vmi.EphemeralDisksDir].
	EphemeralDisks string
	// Images are the disk images in the machine's container disks, by the name
	// of their volume.
	Images map[string]Image
}

// Resolve returns the attachments of v's disks, in the order of the disks. Its
// error joins all faults; those of the spec wrap [vmi.ErrInvalid].
func Resolve(v *vmi.VirtualMachineInstance, p Place) ([]Attachment, error) {
	if p.EphemeralDisks == "" {
		p.EphemeralDisks = vmi.EphemeralDisksDir
	}
	var all []Attachment
	var faults []error
	for _, d := range v.Spec.Domain.Devices.Disks {
		a, err := resolve(v, d.Name, p)
		if err != nil {
			faults = append(faults, fmt.Errorf("disk %s: %w", d.Name, err))
			continue
		}
		all = append(all, a)
	}
	if n := seeds(all); n > 1 {
		faults = append(faults, fmt.Errorf("a machine has at most one cloud-init volume, not %d: %w", n, vmi.ErrInvalid))
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return all, nil
}

func resolve(v *vmi.VirtualMachineInstance, name string, p Place) (Attachment, error) {
	source, ok := volume(v, name)
	if !ok {
		return Attachment{}, fmt.Errorf("there is no volume of this name: %w", vmi.ErrInvalid)
	}
	switch {
	case source.ContainerDisk != nil:
		return overlay(name, p)
	case source.CloudInitNoCloud != nil:
		return seed(v, name, source.CloudInitNoCloud, p)
	case source.EmptyDisk != nil:
		return blank(name, source.EmptyDisk, p)
	default:
		return Attachment{}, fmt.Errorf("its volume has no source: %w", vmi.ErrInvalid)
	}
}

func volume(v *vmi.VirtualMachineInstance, name string) (vmi.VolumeSource, bool) {
	for _, s := range v.Spec.Volumes {
		if s.Name == name {
			return s.VolumeSource, true
		}
	}
	return vmi.VolumeSource{}, false
}

func overlay(name string, p Place) (Attachment, error) {
	base, ok := p.Images[name]
	if !ok {
		return Attachment{}, errors.New("nobody has looked into its container disk")
	}
	return Attachment{
		Name:      name,
		Path:      path.Join(p.EphemeralDisks, "disk-data", name, "disk.qcow2"),
		Format:    QCOW2,
		SizeBytes: roundUp(base.SizeBytes),
		Source:    Overlay{Base: base},
	}, nil
}

func blank(name string, e *vmi.EmptyDisk, p Place) (Attachment, error) {
	size := e.Capacity.Value()
	if size <= 0 {
		return Attachment{}, fmt.Errorf("an empty disk has a capacity above 0, not %s: %w", e.Capacity.String(), vmi.ErrInvalid)
	}
	return Attachment{
		Name:      name,
		Path:      path.Join(p.EphemeralDisks, "empty-disks", name+".qcow2"),
		Format:    QCOW2,
		SizeBytes: roundUp(size),
		Source:    Blank{},
	}, nil
}

func seed(v *vmi.VirtualMachineInstance, name string, c *vmi.CloudInitNoCloud, p Place) (Attachment, error) {
	files, err := cloudinit.NoCloud(v, c)
	if err != nil {
		return Attachment{}, err
	}
	inside := strings.TrimPrefix(vmi.CloudInitImage(v.Namespace, v.Name), vmi.EphemeralDisksDir)
	return Attachment{
		Name:   name,
		Path:   path.Join(p.EphemeralDisks, inside),
		Format: Raw,
		Source: Seed{Label: cloudinit.NoCloudLabel, Files: files},
	}, nil
}

func seeds(all []Attachment) int {
	n := 0
	for _, a := range all {
		if _, ok := a.Source.(Seed); ok {
			n++
		}
	}
	return n
}

// roundUp completes the last sector of a disk.
func roundUp(size int64) int64 { return (size + sector - 1) / sector * sector }
