package supervisor

import (
	"context"
	"maps"
	"slices"

	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/storage/cloudinit"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

// disks makes the disks of v: those of the config from their attachments, and the
// others as in a pod. A configuration drive describes the devices with a tag.
func (s *Supervisor) disks(ctx context.Context, v *vmi.VirtualMachineInstance, settings config.Launcher, tagged []cloudinit.Device) (map[string]domain.Disk, error) {
	others, given := v.DeepCopy(), []storage.Attachment(nil)
	devices := &others.Spec.Domain.Devices
	devices.Disks = slices.DeleteFunc(devices.Disks, func(d vmi.Disk) bool {
		a, ok := s.config.Disks[d.Name]
		if ok {
			a.Name = d.Name
			given = append(given, a)
		}
		return ok
	})
	others.Spec.Volumes = slices.DeleteFunc(others.Spec.Volumes, func(v vmi.Volume) bool {
		_, ok := s.config.Disks[v.Name]
		return ok
	})
	disks, err := makeDisks(ctx, others, place{s.config.Root, settings, s.config.Inspector}, tagged...)
	if err != nil || len(given) == 0 {
		return disks, err
	}
	if err := makeFiles(ctx, given); err != nil {
		return nil, err
	}
	own, err := examine(given)
	maps.Copy(disks, own)
	return disks, err
}
