package supervisor

import (
	"context"
	"fmt"
	"slices"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/launcher/protocol"
)

var setLink = operation{
	kind: launcher.SetLink,
	do:   (*Supervisor).setLink,
	log: func(d launcher.Device) (string, []any) {
		return "switch the link", []any{"interface", d.Name, "state", d.Link}
	},
}

// setLink updates the interface with nothing changed but its link: libvirt refuses
// other changes.
func (s *Supervisor) setLink(ctx context.Context, d launcher.Device) (func(*facts), error) {
	err := s.call(ctx, func(ctx context.Context, c *libvirt.Connection) error {
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
	return func(f *facts) { f.linked(d) }, err
}

// linked notes that an interface has the link of the device.
func (f *facts) linked(d launcher.Device) {
	f.setDevice(d.Alias, func(known *launcher.Device) { known.Link = d.Link })
}

// links are the links of the domain's interfaces, by the names in the spec.
func (f *facts) links() []protocol.Link {
	if f.desired == nil || f.desired.Instance == nil {
		return nil
	}
	var all []protocol.Link
	for _, i := range f.desired.Instance.Spec.Domain.Devices.Interfaces {
		at := slices.IndexFunc(f.attached, func(d launcher.Device) bool { return d.Alias == domain.InterfaceAlias(i.Name) })
		if at >= 0 {
			all = append(all, protocol.Link{Name: i.Name, State: f.attached[at].Link})
		}
	}
	return all
}
