package domain

import "libvirt.org/go/libvirtxml"

// memballoon gives free memory of the guest back to the node and tells how much
// the guest uses, every 10 seconds.
func memballoon() *libvirtxml.DomainMemBalloon {
	return &libvirtxml.DomainMemBalloon{
		Model:             nonTransitional,
		FreePageReporting: "on",
		Stats:             &libvirtxml.DomainMemBalloonStats{Period: 10},
	}
}
