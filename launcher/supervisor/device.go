package supervisor

import (
	"slices"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// desiredDevices are the devices that the spec gives the domain of v. The sizes of
// disks are those of their volumes and are not known here.
func desiredDevices(v *vmi.VirtualMachineInstance) []launcher.Device {
	if v == nil {
		return nil
	}
	var all []launcher.Device
	for _, d := range v.Spec.Domain.Devices.Disks {
		all = append(all, launcher.Device{Alias: domain.DiskAlias(d.Name), Name: "disk " + d.Name})
	}
	for _, i := range v.Spec.Domain.Devices.Interfaces {
		if i.HasLink() { // the others are none of the domain's interfaces
			all = append(all, launcher.Device{Alias: domain.InterfaceAlias(i.Name), Name: "interface " + i.Name, Link: string(i.Link())})
		}
	}
	return all
}

// actualDevices are the devices that the domain has, with the names of those that
// it was built with, the sizes of its disks and the states of its links.
func actualDevices(d *libvirtxml.Domain, built []launcher.Device, disks []protocol.Disk) []launcher.Device {
	var all []launcher.Device
	for _, device := range attached(d) {
		alias := device.Alias
		if i := slices.IndexFunc(built, func(b launcher.Device) bool { return b.Alias == alias }); i >= 0 {
			device.Name, device.SizeBytes = built[i].Name, built[i].SizeBytes
		}
		if i := slices.IndexFunc(disks, func(d protocol.Disk) bool { return domain.DiskAlias(d.Name) == alias }); i >= 0 {
			device.SizeBytes = disks[i].SizeBytes
		}
		all = append(all, device)
	}
	return all
}

// attached are a domain's disks and interfaces by their aliases, with the states of the
// links.
func attached(d *libvirtxml.Domain) []launcher.Device {
	var all []launcher.Device
	add := func(a *libvirtxml.DomainAlias, link string) {
		if a != nil {
			all = append(all, launcher.Device{Alias: a.Name, Name: "device " + a.Name, Link: link})
		}
	}
	if d.Devices == nil {
		return nil
	}
	for _, disk := range d.Devices.Disks {
		add(disk.Alias, "")
	}
	for _, i := range d.Devices.Interfaces {
		state := vmi.InterfaceUp
		if i.Link != nil && i.Link.State == string(vmi.InterfaceDown) {
			state = vmi.InterfaceDown
		}
		add(i.Alias, string(state))
	}
	return all
}
