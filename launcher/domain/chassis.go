package domain

import "libvirt.org/go/libvirtxml"

// chassis adds what the SMBIOS tables say about the guest's case.
func chassis(b *Draft) error {
	c := b.Spec.Chassis
	if c == nil {
		return nil
	}
	var entries []libvirtxml.DomainSysInfoEntry
	for _, e := range []libvirtxml.DomainSysInfoEntry{
		{Name: "manufacturer", Value: c.Manufacturer},
		{Name: "version", Value: c.Version},
		{Name: "serial", Value: c.Serial},
		{Name: "asset", Value: c.Asset},
		{Name: "sku", Value: c.Sku},
	} {
		if e.Value != "" {
			entries = append(entries, e)
		}
	}
	if len(entries) == 0 {
		return nil
	}
	for i := range b.Domain.SysInfo {
		if s := b.Domain.SysInfo[i].SMBIOS; s != nil {
			s.Chassis = &libvirtxml.DomainSysInfoChassis{Entry: entries}
		}
	}
	return nil
}
