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
		all = append(all, launcher.Device{Alias: domain.InterfaceAlias(i.Name), Name: "interface " + i.Name})
	}
	return all
}

// actualDevices are the devices that the domain has, with the names of those that
// it was built with and the sizes of its disks.
func actualDevices(d *libvirtxml.Domain, built []launcher.Device, disks []protocol.Disk) []launcher.Device {
	var all []launcher.Device
	for _, alias := range aliases(d) {
		device := launcher.Device{Alias: alias, Name: "device " + alias}
		if i := slices.IndexFunc(built, func(b launcher.Device) bool { return b.Alias == alias }); i >= 0 {
			device = built[i]
		}
		if i := slices.IndexFunc(disks, func(d protocol.Disk) bool { return domain.DiskAlias(d.Name) == alias }); i >= 0 {
			device.SizeBytes = disks[i].SizeBytes
		}
		all = append(all, device)
	}
	return all
}

// aliases are the aliases of a domain's disks and interfaces.
func aliases(d *libvirtxml.Domain) []string {
	var all []string
	add := func(a *libvirtxml.DomainAlias) {
		if a != nil {
			all = append(all, a.Name)
		}
	}
	if d.Devices == nil {
		return nil
	}
	for _, disk := range d.Devices.Disks {
		add(disk.Alias)
	}
	for _, i := range d.Devices.Interfaces {
		add(i.Alias)
	}
	return all
}
