package libvirt

import (
	"context"
	"fmt"

	golibvirt "github.com/digitalocean/go-libvirt"
)

// Device is a device of a domain, such as a *libvirtxml.DomainDisk.
type Device interface {
	// Marshal is the device as XML.
	Marshal() (string, error)
}

// Attach adds a device to the domain of this name while the guest runs. It returns
// when QEMU has the device; the guest finds it later.
func (c *Connection) Attach(ctx context.Context, name string, device Device) error {
	return c.withDevice(ctx, "attach a device to", name, device, func(d golibvirt.Domain, xml string) error {
		return c.rpc.DomainAttachDeviceFlags(d, xml, uint32(golibvirt.DomainDeviceModifyLive))
	})
}

// Update changes what can be changed of a device that the domain of this name has:
// the medium of a CD-ROM drive, or the link state of an interface, for example. The
// device is found by its target or address.
func (c *Connection) Update(ctx context.Context, name string, device Device) error {
	return c.withDevice(ctx, "update a device of", name, device, func(d golibvirt.Domain, xml string) error {
		return c.rpc.DomainUpdateDeviceFlags(d, xml, golibvirt.DomainDeviceModifyLive)
	})
}

// Detach asks the guest of the domain of this name to release the device with the
// alias. The device is there until an event DeviceRemoved; a guest that does not run
// yet, or has crashed, never releases it.
func (c *Connection) Detach(ctx context.Context, name, alias string) error {
	return c.with(ctx, "detach device "+alias+" from", name, func(d golibvirt.Domain) error {
		return c.rpc.DomainDetachDeviceAlias(d, alias, uint32(golibvirt.DomainDeviceModifyLive))
	})
}

func (c *Connection) withDevice(ctx context.Context, op, name string, device Device, do func(golibvirt.Domain, string) error) error {
	xml, err := device.Marshal()
	if err != nil {
		return fmt.Errorf("write a device of domain %s as XML: %w", name, err)
	}
	return c.with(ctx, op, name, func(d golibvirt.Domain) error { return do(d, xml) })
}
