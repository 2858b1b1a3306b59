package domain

import (
	"cmp"
	"strings"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

func firmware(d *vmi.DomainSpec, h Host) *libvirtxml.DomainOS {
	return &libvirtxml.DomainOS{
		Type:   &libvirtxml.DomainOSType{Arch: h.Arch, Machine: machineType(d.Machine), Type: "hvm"},
		SMBios: &libvirtxml.DomainSMBios{Mode: "sysinfo"},
	}
}

// sysinfo is what the guest finds in its SMBIOS tables: UUID and serial number
// are the VMI's, the rest is the cluster's. Guests recognise what they run on by
// the manufacturer, so by default it is the one that they know.
func sysinfo(id string, f *vmi.Firmware, c vmi.SMBIOSConfiguration) []libvirtxml.DomainSysInfo {
	if f == nil {
		f = &vmi.Firmware{}
	}
	var entries []libvirtxml.DomainSysInfoEntry
	for _, e := range []libvirtxml.DomainSysInfoEntry{
		{Name: "manufacturer", Value: cmp.Or(c.Manufacturer, "KubeVirt")},
		{Name: "product", Value: cmp.Or(c.Product, "None")},
		{Name: "version", Value: c.Version},
		{Name: "serial", Value: f.Serial},
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

// uuid is the UUID that the guest sees, as libvirt writes it: the firmware's, or
// one that is different for each VMI and always the same for one.
func uuid(v *vmi.VirtualMachineInstance) string {
	f := v.Spec.Domain.Firmware
	if f == nil || f.UUID == "" {
		return string(defaults.UUID(v.UID))
	}
	id := strings.ToLower(string(f.UUID))
	hex := strings.ReplaceAll(id, "-", "")
	if len(hex) != 32 {
		return id
	}
	return strings.Join([]string{hex[:8], hex[8:12], hex[12:16], hex[16:20], hex[20:]}, "-")
}
