package domain

import (
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

func firmware(h Host) *libvirtxml.DomainOS {
	return &libvirtxml.DomainOS{
		Type:   &libvirtxml.DomainOSType{Arch: h.Arch, Machine: "q35", Type: "hvm"},
		SMBios: &libvirtxml.DomainSMBios{Mode: "sysinfo"},
	}
}

// sysinfo is what the guest finds in its SMBIOS tables. Guests recognise what
// they run on by the manufacturer, so it is the one that they know.
func sysinfo(id string) []libvirtxml.DomainSysInfo {
	return []libvirtxml.DomainSysInfo{{SMBIOS: &libvirtxml.DomainSysInfoSMBIOS{
		System: &libvirtxml.DomainSysInfoSystem{Entry: []libvirtxml.DomainSysInfoEntry{
			{Name: "manufacturer", Value: "KubeVirt"},
			{Name: "product", Value: "None"},
			{Name: "uuid", Value: id},
			{Name: "family", Value: "KubeVirt"},
		}},
	}}}
}

// uuid is the UUID that the guest sees: the same for every start of a machine
// and different for each machine.
func uuid(v *vmi.VirtualMachineInstance) string { return string(defaults.UUID(v.UID)) }
