package domain

import (
	"cmp"

	"libvirt.org/go/libvirtxml"
)

// statsPeriod is the usual time between two measurements, in seconds.
const statsPeriod = 10

// memballoon adds the device that gives free memory of the guest back to the node
// and reports how much the guest uses, in the period of the cluster's settings. A
// negative period: never. libvirt adds one to a domain that says nothing of it.
func memballoon(b *build) error {
	if !isOn(b.spec.Devices.AutoattachMemBalloon, true) {
		b.domain.Devices.MemBalloon = &libvirtxml.DomainMemBalloon{Model: "none"}
		return nil
	}
	m := &libvirtxml.DomainMemBalloon{Model: nonTransitional, FreePageReporting: "on"}
	if p := b.host.Settings.StatsPeriod; p >= 0 {
		m.Stats = &libvirtxml.DomainMemBalloonStats{Period: uint(cmp.Or(p, statsPeriod))}
	}
	b.domain.Devices.MemBalloon = m
	return nil
}
