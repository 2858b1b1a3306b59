package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
)

// disks returns the attachments of the volumes that are given by paths, and unpacks
// the container disks below root. Its error joins the faults of all volumes.
func (h *host) disks(ctx context.Context, v *vmi.VirtualMachineInstance, root string) (map[string]storage.Attachment, error) {
	all := map[string]storage.Attachment{}
	var faults []error
	known := map[string]bool{}
	for _, vol := range v.Spec.Volumes {
		known[vol.Name] = true
		path, given := h.volumes[vol.Name]
		var err error
		switch {
		case given:
			all[vol.Name], err = attachment(ctx, vol, path, root)
		case vol.ContainerDisk != nil:
			err = h.unpack(ctx, vol, v.Spec.Architecture, root)
		case vol.PersistentVolumeClaim != nil || vol.DataVolume != nil || vol.HostDisk != nil || vol.Ephemeral != nil:
			err = fmt.Errorf("give its disk with -volume %s=PATH", vol.Name)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("volume %s: %w", vol.Name, err))
		}
	}
	for name := range h.volumes {
		if !known[name] {
			faults = append(faults, fmt.Errorf("volume %s: the VMI has none of this name", name))
		}
	}
	return all, errors.Join(faults...)
}

// attachment is the disk at path: an image, a block device, or the image disk.img in
// a folder or else the one in its folder disk. A volume whose content is not to be
// changed gets an overlay below root.
func attachment(ctx context.Context, vol vmi.Volume, path, root string) (storage.Attachment, error) {
	path, err := filepath.Abs(path)
	if err == nil {
		path, err = filepath.EvalSymlinks(path) // those below it are not followed
	}
	if err != nil {
		return storage.Attachment{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return storage.Attachment{}, err
	}
	if info.Mode()&(fs.ModeDevice|fs.ModeCharDevice) == fs.ModeDevice {
		return storage.Attachment{Path: path, Format: storage.Raw}, nil
	}
	dir, file := filepath.Split(path)
	if info.IsDir() {
		dir, file = path, ""
		if _, err := os.Lstat(filepath.Join(path, "disk.img")); err == nil {
			file = "disk.img"
		}
	}
	base, err := inspector.ContainerDisk(ctx, dir, file)
	if err != nil {
		return storage.Attachment{}, err
	}
	if vol.ContainerDisk == nil && vol.Ephemeral == nil {
		claim := vol.PersistentVolumeClaim
		return storage.Attachment{Path: base.Path, Format: base.Format, SizeBytes: base.SizeBytes, ReadOnly: claim != nil && claim.ReadOnly}, nil
	}
	return storage.Attachment{
		Path: filepath.Join(root, volume.EphemeralDisks().MountPath, "given", vol.Name+".qcow2"), Format: storage.QCOW2,
		SizeBytes: base.SizeBytes, Source: storage.Overlay{Base: base},
	}, nil
}

// unpack makes the container disk of a volume of its archive, where a launcher finds
// it.
func (h *host) unpack(ctx context.Context, vol vmi.Volume, arch, root string) error {
	ref := vol.ContainerDisk.Image
	path, ok := h.images[ref]
	if !ok {
		return fmt.Errorf("container disk %s: give its archive with -image %s=ARCHIVE, or its disk with -volume %s=PATH", ref, ref, vol.Name)
	}
	observed, err := volume.Observations([]vmi.Volume{vol}, volume.Node{Root: root})
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	u := unpacker{reference: ref, arch: arch, file: vol.ContainerDisk.Path, dir: filepath.Join(observed[0].Image.Dir, "disk")}
	if err := u.unpack(ctx, f); err != nil {
		return fmt.Errorf("unpack %s: %w", path, err)
	}
	return nil
}
