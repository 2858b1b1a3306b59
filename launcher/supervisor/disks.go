package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/podvisor/podvisor/internal/storage/image"
	"github.com/podvisor/podvisor/internal/storage/probe"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/storage/cloudinit"
	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

// place is where the launcher makes disks, and how: as the cluster's settings say.
func (s *Supervisor) place(settings config.Launcher) place {
	return place{root: s.config.Root, settings: settings, inspector: image.Inspector(s.config.Inspector), kinds: s.config.VolumeKinds}
}

// place is where the disks of a VMI are made, and how.
type place struct {
	root      string // the folder that is the root of the pod
	settings  config.Launcher
	inspector image.Inspector
	kinds     []volume.Kind // nil: all
	prepared  preparation
	instead   func(storage.Attachment) storage.Attachment // what a disk is made as; nil: as it is
}

// as are the attachments as their disks are made.
func (p place) as(all []storage.Attachment) []storage.Attachment {
	if p.instead == nil {
		return all
	}
	var out []storage.Attachment
	for _, a := range all {
		out = append(out, p.instead(a))
	}
	return out
}

// makeDisks makes the disks of v in the pod and returns them by their names. A
// configuration drive describes the devices. Errors name the volume and the path;
// those of the spec wrap [vmi.ErrInvalid].
func makeDisks(ctx context.Context, v *vmi.VirtualMachineInstance, p place, devices ...cloudinit.Device) (map[string]domain.Disk, error) {
	attachments, err := p.resolve(ctx, v, devices...)
	if err != nil {
		return nil, err
	}
	attachments = p.as(attachments)
	if err := p.makeFiles(ctx, attachments); err != nil {
		return nil, err
	}
	disks, err := examine(attachments)
	for _, s := range v.Status.VolumeStatus {
		if d, ok := disks[s.Name]; ok && s.PersistentVolumeClaimInfo != nil {
			d.Preallocated = s.PersistentVolumeClaimInfo.Preallocated
			disks[s.Name] = d
		}
	}
	return disks, err
}

// resolve returns how the disks of v are attached, with the sizes that they shall have:
// whatever makes or enlarges a disk asks here.
func (p place) resolve(ctx context.Context, v *vmi.VirtualMachineInstance, devices ...cloudinit.Device) ([]storage.Attachment, error) {
	node, err := p.observe(ctx, v.Spec.Volumes)
	if err != nil {
		return nil, err
	}
	node.Devices = devices
	return p.attach(v, node)
}

// attach is resolve for what was observed.
func (p place) attach(v *vmi.VirtualMachineInstance, node volume.Node) (_ []storage.Attachment, err error) {
	node.Space = volume.Space{ReserveBytes: p.settings.ReserveBytes, TolerancePercent: p.settings.TolerancePercent}
	if node.Keys, err = seedKeys(v, p.root); err != nil {
		return nil, err
	}
	return volume.Resolve(v, node)
}

// observe observes what attachments of the volumes depend on.
func (p place) observe(ctx context.Context, volumes []vmi.Volume) (volume.Node, error) {
	p.inspector.MemoryBytes = cmp.Or(p.settings.InspectionMemoryBytes, p.inspector.MemoryBytes)
	node := volume.Node{Root: p.root, Kinds: p.kinds, Images: map[string]storage.Image{}, Paths: map[string]storage.Facts{}, Content: map[string][]byte{}}
	observations, err := volume.Observations(volumes, node)
	if err != nil {
		return volume.Node{}, err
	}
	var faults []error
	for _, o := range observations {
		faults = append(faults, p.add(ctx, o, node))
	}
	return node, errors.Join(faults...)
}

// add makes an observation and adds it to the facts of the node.
func (p place) add(ctx context.Context, o volume.Observation, node volume.Node) error {
	if c := o.Image; c != nil {
		i, ok := p.prepared.images[o.Volume]
		if !ok || c.File != "" {
			var err error
			if i, err = p.inspector.ContainerDisk(ctx, c.Dir, c.File); err != nil {
				return fmt.Errorf("volume %s, container disk %s: %w", o.Volume, c.Reference, err)
			}
		}
		node.Images[o.Volume] = i
	}
	for _, path := range o.Paths {
		facts, err := probe.Path(path)
		if err != nil {
			return fmt.Errorf("volume %s: %w", o.Volume, err)
		}
		node.Paths[path] = facts
	}
	for _, path := range o.Content {
		content, ok, err := probe.Content(path)
		if err != nil {
			return fmt.Errorf("volume %s: %w", o.Volume, err)
		}
		if ok {
			node.Content[path] = content
		}
	}
	return nil
}

// makeFiles makes the files of the attachments that are not prepared, all at once.
func (p place) makeFiles(ctx context.Context, attachments []storage.Attachment) error {
	var all sync.WaitGroup
	made := make([]error, len(attachments))
	for i, a := range attachments {
		if p.prepared.has(a) {
			continue
		}
		all.Go(func() { made[i] = image.Make(ctx, a) })
	}
	all.Wait()
	return errors.Join(made...)
}

// examine adds the facts of what was made to the attachments.
func examine(attachments []storage.Attachment) (map[string]domain.Disk, error) {
	disks := map[string]domain.Disk{}
	var faults []error
	for _, a := range attachments {
		d, err := examined(a)
		if err != nil {
			faults = append(faults, fmt.Errorf("examine disk of volume %s: %w", a.Name, err))
			continue
		}
		disks[a.Name] = d
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return disks, nil
}

func examined(a storage.Attachment) (domain.Disk, error) {
	facts, err := content(a.Path)
	if err != nil {
		return domain.Disk{}, err
	}
	direct := facts.DirectIO
	if over, ok := a.Source.(storage.Overlay); ok {
		base, err := content(over.Base.Path)
		if err != nil {
			return domain.Disk{}, err
		}
		direct = direct && base.DirectIO
	}
	if a.SizeBytes == 0 && a.Format == storage.Raw {
		a.SizeBytes = facts.SizeBytes
	}
	return domain.Disk{Attachment: a, Device: facts.Kind == storage.BlockDevice, DirectIO: direct, Blocks: facts.Blocks}, nil
}

// content returns the facts of a path that holds a disk.
func content(path string) (storage.Facts, error) {
	facts, err := probe.Path(path)
	switch {
	case err != nil:
		return storage.Facts{}, err
	case facts.Kind == storage.Missing:
		return storage.Facts{}, fmt.Errorf("%s is missing", path)
	case facts.Kind == storage.Directory:
		return storage.Facts{}, fmt.Errorf("%s is a directory", path)
	}
	return facts, nil
}

// disksOf is what the launcher reports of the disks of v on host.
func disksOf(v *vmi.VirtualMachineInstance, host domain.Host) []protocol.Disk {
	specs := v.Spec.Domain.Devices.Disks
	places := domain.DiskPlaces(specs, host.Places)
	var all []protocol.Disk
	for _, d := range specs {
		if from, ok := host.Disks[d.Name]; ok { // else it is an empty drive
			all = append(all, protocol.Disk{Name: d.Name, Target: places[domain.DiskAlias(d.Name)].Target, SizeBytes: from.SizeBytes})
		}
	}
	return all
}
