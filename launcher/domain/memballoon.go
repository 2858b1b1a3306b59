package domain

import (
	"cmp"

	"libvirt.org/go/libvirtxml"
)

// statsPeriod is the usual time between two measurements, in seconds.
const statsPeriod = 10

// memballoon gives free memory of the guest back to the node and tells how much
// the guest uses, in the period of the cluster. A negative one: never.
func memballoon(period int) *libvirtxml.DomainMemBalloon {
	b := &libvirtxml.DomainMemBalloon{Model: nonTransitional, FreePageReporting: "on"}
	if period >= 0 {
		b.Stats = &libvirtxml.DomainMemBalloonStats{Period: uint(cmp.Or(period, statsPeriod))}
	}
	return b
}
