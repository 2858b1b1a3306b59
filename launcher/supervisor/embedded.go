package supervisor

import (
	"context"
	"maps"
	"slices"

	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/storage/cloudinit"
	"github.com/podvisor/podvisor/vmi"
)

// disks makes the disks of v: those of the config from their attachments, and the
// others as in a pod. A configuration drive describes the devices with a tag.
func (s *Supervisor) disks(ctx context.Context, v *vmi.VirtualMachineInstance, p place, tagged []cloudinit.Device) (map[string]domain.Disk, error) {
	others, given := s.given(v)
	disks, err := makeDisks(ctx, others, p, tagged...)
	if err != nil || len(given) == 0 {
		return disks, err
	}
	given = p.as(given)
	if err := p.makeFiles(ctx, given); err != nil {
		return nil, err
	}
	own, err := examine(given)
	maps.Copy(disks, own)
	return disks, err
}

// given are the attachments of the config for v's disks. The others of v are disks that
// are where a pod has them.
func (s *Supervisor) given(v *vmi.VirtualMachineInstance) (others *vmi.VirtualMachineInstance, given []storage.Attachment) {
	others = v.DeepCopy()
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
	return others, given
}
