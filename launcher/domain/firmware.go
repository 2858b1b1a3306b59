package domain

import (
	"cmp"
	"crypto/sha1"
	"fmt"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

func firmware(h Host) *libvirtxml.DomainOS {
	return &libvirtxml.DomainOS{
		Type:   &libvirtxml.DomainOSType{Arch: h.Arch, Machine: "q35", Type: "hvm"},
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

// space is the namespace of the UUIDs that follow from the UIDs of machines.
var space = [16]byte{0x8f, 0x2b, 0x6a, 0x0e, 0x5d, 0x33, 0x4c, 0x61, 0x9a, 0x4e, 0x17, 0xd0, 0x52, 0xc8, 0x7b, 0xf9}

// uuid is the UUID that the guest sees: the same for every start of a machine
// and different for each machine (RFC 9562, version 5).
func uuid(v *vmi.VirtualMachineInstance) string {
	u := sha1.Sum(append(space[:], v.UID...))
	u[6] = u[6]&0x0f | 0x50
	u[8] = u[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:16])
}
