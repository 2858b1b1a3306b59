package supervisor

import (
	"context"
	"errors"
	"slices"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/internal/storage/image"
	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
)

// measureDisks finds out, in the background, how large the disks in claims shall be: a
// claim may have grown since the domain was created.
func (s *Supervisor) measureDisks() {
	s.facts.mu.Lock()
	desired, exists := s.facts.desired, s.facts.domain == launcher.Running || s.facts.domain == launcher.Paused
	s.facts.mu.Unlock()
	if !exists || desired == nil || desired.Instance == nil {
		return
	}
	s.work.Go(func() {
		others, _ := s.given(desired.Instance)
		growing, err := s.place(desired.Settings).inClaims(s.inner, others)
		if err != nil {
			s.config.Logger.Warn("the sizes of the disks in claims are not known", "err", err)
			return
		}
		s.facts.change(func(f *facts) {
			if f.desired == desired { // else another measurement follows
				f.growing = growing
				f.enlarge()
			}
		})
	})
}

// inClaims are the disks of v that are in claims and outlive the pod, as they shall be,
// by their aliases.
func (p place) inClaims(ctx context.Context, v *vmi.VirtualMachineInstance) (map[string]storage.Attachment, error) {
	part := *v
	part.Spec.Volumes = slices.DeleteFunc(slices.Clone(v.Spec.Volumes), func(v vmi.Volume) bool {
		k, err := volume.Of(v, p.kinds)
		return err != nil || k.Claim == nil || !k.Outlasts
	})
	part.Spec.Domain.Devices.Disks = slices.DeleteFunc(slices.Clone(v.Spec.Domain.Devices.Disks), func(d vmi.Disk) bool {
		return !slices.ContainsFunc(part.Spec.Volumes, func(v vmi.Volume) bool { return v.Name == d.Name })
	})
	part.Spec.AccessCredentials = nil // they are on no disk in a claim
	all, err := p.resolve(ctx, &part)
	if err != nil {
		return nil, err
	}
	out := map[string]storage.Attachment{}
	for _, a := range all {
		out[domain.DiskAlias(a.Name)] = a
	}
	return out, nil
}

// enlarge gives the desired devices the sizes that are known.
func (f *facts) enlarge() {
	devices := slices.Clone(f.devices)
	for i, d := range devices {
		devices[i].SizeBytes = f.growing[d.Alias].SizeBytes
	}
	f.devices = devices
}

var resizeDisk = operation{
	kind: launcher.ResizeDisk,
	do:   (*Supervisor).resizeDisk,
	log: func(d launcher.Device) (string, []any) {
		return "resize the disk", []any{"disk", d.Name, "bytes", d.SizeBytes}
	},
}

// resizeDisk extends what the disk is in, and the disk that the guest sees.
func (s *Supervisor) resizeDisk(ctx context.Context, d launcher.Device) (func(*facts), error) {
	a, target := s.facts.grows(d.Alias)
	if target == "" {
		return nil, errors.New("its place in the domain is not known")
	}
	if a.SizeBytes != d.SizeBytes {
		return nil, errors.New("its claim has another size by now")
	}
	if err := image.Make(ctx, a); err != nil {
		return nil, err
	}
	err := s.call(ctx, func(ctx context.Context, c *libvirt.Connection) error {
		return c.BlockResize(ctx, s.domainName(), target, d.SizeBytes)
	})
	return func(f *facts) { f.resized(d) }, err
}

// grows is the disk with the alias as it shall be, and its name on its bus. Empty: there
// is no such disk.
func (f *facts) grows(alias string) (a storage.Attachment, target string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := f.disk(alias); i >= 0 {
		target = f.observed.Disks[i].Target
	}
	return f.growing[alias], target
}

// resized notes that a disk has the size of the device.
func (f *facts) resized(d launcher.Device) {
	disks := slices.Clone(f.observed.Disks) // which may have been published
	if i := f.disk(d.Alias); i >= 0 {
		disks[i].SizeBytes = d.SizeBytes
	}
	f.observed.Disks = disks
	f.setDevice(d.Alias, func(known *launcher.Device) { known.SizeBytes = d.SizeBytes })
}

// disk is the number of the disk that has the alias, or below 0.
func (f *facts) disk(alias string) int {
	return slices.IndexFunc(f.observed.Disks, func(d protocol.Disk) bool { return domain.DiskAlias(d.Name) == alias })
}
