package volume

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/storage/cloudinit"
	"github.com/podvisor/podvisor/vmi"
)

// sector is the size that a guest's disk is a multiple of.
const sector = 512

// Node are the facts of the pod on its node that attachments depend on. The zero
// value is a pod in which nothing has been observed.
type Node struct {
	// Root is the folder that is the pod's root. Empty: the process is in the pod.
	Root string
	// Images are the disk images in container disks, by the name of the volume.
	Images map[string]storage.Image
	// Paths are the facts of paths, by the path.
	Paths map[string]storage.Facts
	// Keys are the SSH public keys that cloud-init installs.
	Keys Keys
	// Devices are the devices that a configuration drive describes.
	Devices []cloudinit.Device
	// Content is the content of files, by the path. A file that does not exist is
	// not in it.
	Content map[string][]byte
	// Space is how the sizes of disks and of their claims may differ.
	Space Space
	// Kinds are the kinds of volumes that are served. Nil: [Kinds].
	Kinds []Kind
}

// Keys are SSH public keys for each kind of volume with cloud-init's data.
type Keys struct{ NoCloud, ConfigDrive []string }

// Observation is what has to be observed before a volume is attached. The zero
// value is nothing.
type Observation struct {
	// Volume is the name of the volume.
	Volume string
	// Image is the container disk whose image goes into [Node].Images. Nil: none.
	Image *ContainerImage
	// Paths are those whose facts go into [Node].Paths.
	Paths []string
	// Content are the paths of small files whose content goes into [Node].Content.
	Content []string
}

// ContainerImage is a container disk in the pod.
type ContainerImage struct {
	// Reference is the reference of the container image.
	Reference string
	// Dir is the folder with the content of the container image.
	Dir string
	// File is the absolute path of the disk image in the container image. Empty: the
	// one file in /disk.
	File string
}

// Observations returns what has to be observed before the volumes are attached. Of
// n only Root and Kinds are used. Its error joins the faults of all volumes, which wrap
// [vmi.ErrInvalid].
func Observations(volumes []vmi.Volume, n Node) ([]Observation, error) {
	return orAll(n.Kinds).observations(volumes, n)
}

func (all kinds) observations(volumes []vmi.Volume, n Node) ([]Observation, error) {
	var out []Observation
	var faults []error
	for _, v := range volumes {
		k, err := all.of(v)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		if k.Observe != nil {
			o := k.Observe(v, n)
			o.Volume = v.Name
			out = append(out, o)
		}
	}
	return out, errors.Join(faults...)
}

// Resolve returns the attachments of v's disks, in the order of the disks; a drive
// without a volume has none. Its error joins all faults; those of the spec wrap [vmi.ErrInvalid].
func Resolve(v *vmi.VirtualMachineInstance, n Node) ([]storage.Attachment, error) {
	return orAll(n.Kinds).resolve(v, n)
}

func (all kinds) resolve(v *vmi.VirtualMachineInstance, n Node) ([]storage.Attachment, error) {
	var out []storage.Attachment
	var faults []error
	at := map[string]string{}
	for _, d := range v.Spec.Domain.Devices.Disks {
		if emptyDrive(v, d) {
			continue
		}
		a, err := all.attachment(v, d.Name, n)
		if first, ok := at[a.Path]; ok && err == nil {
			err = fmt.Errorf("volume %s: %s is the file of volume %s: %w", d.Name, a.Path, first, vmi.ErrInvalid)
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		at[a.Path] = a.Name
		out = append(out, a)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return out, nil
}

// emptyDrive says that the disk is a CD-ROM drive without a volume.
func emptyDrive(v *vmi.VirtualMachineInstance, d vmi.Disk) bool {
	return d.CDRom != nil && !slices.ContainsFunc(v.Spec.Volumes, func(v vmi.Volume) bool { return v.Name == d.Name })
}

// attachment returns the attachment of v's volume name.
func (all kinds) attachment(v *vmi.VirtualMachineInstance, name string, n Node) (storage.Attachment, error) {
	i := slices.IndexFunc(v.Spec.Volumes, func(v vmi.Volume) bool { return v.Name == name })
	if i < 0 {
		return storage.Attachment{}, fmt.Errorf("volume %s: not in spec.volumes: %w", name, vmi.ErrInvalid)
	}
	k, err := all.of(v.Spec.Volumes[i])
	if err != nil {
		return storage.Attachment{}, err
	}
	a, err := k.Attach(v, v.Spec.Volumes[i], n)
	if err != nil {
		return storage.Attachment{}, fmt.Errorf("volume %s: %w", name, err)
	}
	if a.Ephemeral() && !strings.HasPrefix(path.Clean(a.Path), ephemeralDir(n.Root)+"/") {
		return storage.Attachment{}, fmt.Errorf("volume %s: source %T would replace %s, which is not in %s", name, a.Source, a.Path, ephemeralDir(n.Root))
	}
	if !a.Ephemeral() && a.Format != storage.Raw {
		return storage.Attachment{}, fmt.Errorf("volume %s: %s outlives the pod and is in format %s, not %s", name, a.Path, a.Format, storage.Raw)
	}
	a.Name = name
	return a, nil
}

// roundUp completes the last sector of a disk.
func roundUp(size int64) int64 { return (size + sector - 1) / sector * sector }
