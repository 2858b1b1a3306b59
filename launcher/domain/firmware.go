package domain

import (
	"cmp"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

func firmware(d *vmi.DomainSpec, h Host) *libvirtxml.DomainOS {
	return &libvirtxml.DomainOS{
		Type:   &libvirtxml.DomainOSType{Arch: h.Arch, Machine: board(d.Machine), Type: "hvm"},
		SMBios: &libvirtxml.DomainSMBios{Mode: "sysinfo"},
	}
}

// sysinfo is what the guest finds in its SMBIOS tables, as the cluster has it.
// Guests recognise what they run on by the manufacturer, so by default it is the
// one that they know.
func sysinfo(id string, c vmi.SMBIOSConfiguration) []libvirtxml.DomainSysInfo {
	var entries []libvirtxml.DomainSysInfoEntry
	for _, e := range []libvirtxml.DomainSysInfoEntry{
		{Name: "manufacturer", Value: cmp.Or(c.Manufacturer, "KubeVirt")},
		{Name: "product", Value: cmp.Or(c.Product, "None")},
		{Name: "version", Value: c.Version},
		{Name: "uuid", Value: id},
		{Name: "sku", Value: c.Sku},
		{Name: "family", Value: cmp.Or(c.Family, "KubeVirt")},
	} {
		if e.Value != "" {
			entries = append(entries, e)
		}
	}
	return []libvirtxml.DomainSysInfo{{SMBIOS: &libvirtxml.DomainSysInfoSMBIOS{
		System: &libvirtxml.DomainSysInfoSystem{Entry: entries},
	}}}
}

// uuid is the UUID that the guest sees: the same for every start of a machine
// and different for each machine.
func uuid(v *vmi.VirtualMachineInstance) string { return string(defaults.UUID(v.UID)) }
