package supervisor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/launcher/libvirt"
	"github.com/podvisor/podvisor/launcher/protocol"
)

// actSwitchLink makes the link of an interface what the device says, in the background.
func (s *Supervisor) actSwitchLink(ctx context.Context, a launcher.SwitchLink) {
	s.facts.change(func(f *facts) { f.switching = true })
	s.work.Go(func() {
		err := s.switchLink(ctx, a.Device)
		s.config.Logger.Info("switch the link", "interface", a.Device.Name, "state", a.Device.Link, "err", err)
		s.facts.change(func(f *facts) { f.switched(a.Device, err, time.Now()) })
	})
}

// switchLink updates the interface with nothing changed but its link: libvirt refuses
// other changes.
func (s *Supervisor) switchLink(ctx context.Context, d launcher.Device) error {
	return s.call(ctx, func(ctx context.Context, c *libvirt.Connection) error {
		now, err := c.Describe(ctx, s.domainName())
		if err != nil {
			return err
		}
		at := -1
		if now.Devices != nil {
			at = slices.IndexFunc(now.Devices.Interfaces, func(i libvirtxml.DomainInterface) bool { return i.Alias != nil && i.Alias.Name == d.Alias })
		}
		if at < 0 {
			return fmt.Errorf("domain %s has no interface with the alias %s", s.domainName(), d.Alias)
		}
		i := &now.Devices.Interfaces[at]
		i.Link = &libvirtxml.DomainInterfaceLink{State: d.Link}
		return c.Update(ctx, s.domainName(), i)
	})
}

// switched notes that an attempt to switch a link is over.
func (f *facts) switched(d launcher.Device, err error, now time.Time) {
	f.switching = false
	if err != nil {
		f.switches++
		f.switchFault, f.switchAt = fmt.Errorf("set the link of %s %s: %w", d.Name, d.Link, err), now.Add(launcher.Backoff(f.switches))
		return
	}
	f.switches, f.switchFault, f.switchAt = 0, nil, time.Time{}
	devices := slices.Clone(f.running.devices)
	for i := range devices {
		if devices[i].Alias == d.Alias {
			devices[i].Link = d.Link
		}
	}
	f.running.devices = devices
}

// links are the links of the domain's interfaces, by the names in the spec.
func (f *facts) links() []protocol.Link {
	if f.desired == nil || f.desired.Instance == nil {
		return nil
	}
	var all []protocol.Link
	for _, i := range f.desired.Instance.Spec.Domain.Devices.Interfaces {
		at := slices.IndexFunc(f.running.devices, func(d launcher.Device) bool { return d.Alias == domain.InterfaceAlias(i.Name) })
		if at >= 0 {
			all = append(all, protocol.Link{Name: i.Name, State: f.running.devices[at].Link})
		}
	}
	return all
}
