package domain

import (
	"strconv"

	"libvirt.org/go/libvirtxml"
)

// vsockSlot is the slot of the vsock device.
const vsockSlot = 0x16

// vsockPart is the vsock device.
//
// +podvisor:entry
var vsockPart = Part{
	Name: "vsock", Build: vsock,
	Devices: func(l *libvirtxml.DomainDeviceList) []Device {
		if l.VSock == nil {
			return nil
		}
		return []Device{{Name: "the vsock device", Address: &l.VSock.Address, At: OnRoot(vsockSlot, 0)}}
	},
}

// vsock adds the device for sockets between the guest and its node, if the spec has
// one. libvirt takes the lowest number from 3 on that no other guest of the node has,
// as the kernel says: those of the node's other pods too.
//
// The model is virtio without more, since there is no transitional one: QEMU makes of
// it one without the legacy interface.
func vsock(b *Draft) error {
	if !isOn(b.Spec.Devices.AutoattachVSOCK, false) {
		return nil
	}
	b.Domain.Devices.VSock = &libvirtxml.DomainVSock{
		Model: "virtio",
		CID:   &libvirtxml.DomainVSockCID{Auto: "yes"},
		Alias: deviceAlias("vsock", "0"),
	}
	return nil
}

// VSOCKCID is the number of the guest of d, a domain as libvirt returns it, in the
// addresses of vsock sockets on its node. 0: it has none.
func VSOCKCID(d *libvirtxml.Domain) uint32 {
	if d.Devices == nil || d.Devices.VSock == nil || d.Devices.VSock.CID == nil {
		return 0
	}
	cid, err := strconv.ParseUint(d.Devices.VSock.CID.Address, 10, 32)
	if err != nil {
		return 0
	}
	return uint32(cid)
}
