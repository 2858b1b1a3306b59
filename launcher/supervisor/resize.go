package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/launcher/libvirt"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/storage/image"
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
	part.Spec.Volumes = slices.DeleteFunc(slices.Clone(v.Spec.Volumes), func(v vmi.Volume) bool { return v.Claim() == "" || v.Ephemeral != nil })
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

// actResize makes a disk larger in the background.
func (s *Supervisor) actResize(ctx context.Context, r launcher.Resize) {
	var a storage.Attachment
	target := ""
	s.facts.change(func(f *facts) {
		f.resizing, a = true, f.growing[r.Device.Alias]
		if i := f.disk(r.Device.Alias); i >= 0 {
			target = f.running.disks[i].Target
		}
	})
	s.work.Go(func() {
		err := s.resize(ctx, a, target, r.Device.SizeBytes)
		s.config.Logger.Info("resize the disk", "disk", r.Device.Name, "bytes", r.Device.SizeBytes, "err", err)
		s.facts.change(func(f *facts) { f.resized(r.Device, err, time.Now()) })
	})
}

// resize extends what the disk is in, and the disk that the guest sees.
func (s *Supervisor) resize(ctx context.Context, a storage.Attachment, target string, size int64) error {
	if target == "" {
		return errors.New("its place in the domain is not known")
	}
	if a.SizeBytes != size {
		return errors.New("its claim has another size by now")
	}
	if err := image.Make(ctx, a); err != nil {
		return err
	}
	return s.call(ctx, func(ctx context.Context, c *libvirt.Connection) error {
		return c.BlockResize(ctx, s.domainName(), target, size)
	})
}

// resized notes that an attempt to resize a disk is over.
func (f *facts) resized(d launcher.Device, err error, now time.Time) {
	f.resizing = false
	if err != nil {
		f.resizes++
		f.resizeFault, f.resizeAt = fmt.Errorf("resize %s to %d bytes: %w", d.Name, d.SizeBytes, err), now.Add(launcher.Backoff(f.resizes))
		return
	}
	f.resizes, f.resizeFault, f.resizeAt = 0, nil, time.Time{}
	disks, devices := slices.Clone(f.running.disks), slices.Clone(f.running.devices)
	if i := f.disk(d.Alias); i >= 0 {
		disks[i].SizeBytes = d.SizeBytes
	}
	for i := range devices {
		if devices[i].Alias == d.Alias {
			devices[i].SizeBytes = d.SizeBytes
		}
	}
	f.running.disks, f.running.devices = disks, devices
}

// disk is the number of the disk that has the alias, or below 0.
func (f *facts) disk(alias string) int {
	return slices.IndexFunc(f.running.disks, func(d protocol.Disk) bool { return domain.DiskAlias(d.Name) == alias })
}
