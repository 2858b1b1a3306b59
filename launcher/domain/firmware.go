package domain

import (
	"cmp"
	"path"
	"strings"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// The firmware of the launcher's full image. What has Microsoft's keys lets only boot
// what one of them has signed, as most computers do when they are sold.
const (
	firmwareDir = "/usr/share/OVMF"
	efiCode     = firmwareDir + "/OVMF_CODE_4M.fd"
	efiVars     = firmwareDir + "/OVMF_VARS_4M.fd"
	secureCode  = firmwareDir + "/OVMF_CODE_4M.secboot.fd"
	secureVars  = firmwareDir + "/OVMF_VARS_4M.ms.fd"
	armCode     = "/usr/share/AAVMF/AAVMF_CODE.fd"
	armVars     = "/usr/share/AAVMF/AAVMF_VARS.fd"
)

// UEFI is the firmware that starts a guest by UEFI.
type UEFI struct {
	// Code is the file of the firmware, which is not written to.
	Code string
	// Template is the file with the variables that a guest starts with.
	Template string
	// Variables is the file of the guest's own variables, a copy of Template that
	// grows no larger. Guests with and without secure boot have different ones:
	// those without have no keys.
	Variables string
	// Secure says that the firmware boots only what is signed.
	Secure bool
}

// FirmwareOf returns the UEFI firmware that the spec asks for, or nil for another
// firmware.
func FirmwareOf(s *vmi.VirtualMachineInstanceSpec) *UEFI {
	return firmwareOn(&s.Domain, archOf(s.Architecture))
}

// firmwareOn is that on an architecture in libvirt's words.
func firmwareOn(d *vmi.DomainSpec, arch string) *UEFI {
	e := d.UEFI()
	switch {
	case e == nil || arch == archS390X:
		return nil
	case arch == archARM:
		return &UEFI{Code: armCode, Template: armVars, Variables: vmi.NVRAMDir + "/uefi.fd"}
	case e.SecureBoot == nil || *e.SecureBoot:
		return &UEFI{Code: secureCode, Template: secureVars, Variables: vmi.NVRAMDir + "/secure-boot.fd", Secure: true}
	}
	return &UEFI{Code: efiCode, Template: efiVars, Variables: vmi.NVRAMDir + "/uefi.fd"}
}

// firmware adds what the guest is started by. The firmware is named by its files:
// libvirt would choose by what is installed.
func firmware(b *Draft) error {
	os := &libvirtxml.DomainOS{
		Type:   &libvirtxml.DomainOSType{Arch: b.Host.Arch, Machine: b.machineType(), Type: "hvm"},
		SMBios: &libvirtxml.DomainSMBios{Mode: "sysinfo"},
	}
	b.Domain.OS = os
	if u := firmwareOn(b.Spec, b.Host.Arch); u != nil {
		os.Loader = &libvirtxml.DomainLoader{Path: u.Code, Readonly: "yes", Secure: yesNo(u.Secure), Type: "pflash"}
		os.NVRam = &libvirtxml.DomainNVRam{NVRam: path.Join(b.Host.Root, u.Variables), Template: u.Template}
	}
	if f := b.Spec.Firmware; f != nil && f.Bootloader != nil && f.Bootloader.BIOS != nil && f.Bootloader.BIOS.UseSerial != nil {
		os.BIOS = &libvirtxml.DomainBIOS{UseSerial: yesNo(*f.Bootloader.BIOS.UseSerial)}
	}
	return nil
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
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
