package domain

import (
	"cmp"

	"github.com/podvisor/podvisor/vmi"
	"libvirt.org/go/libvirtxml"
)

// statsPeriod is the usual time between two measurements, in seconds.
const statsPeriod = 10

// balloonSlot is the slot of the balloon.
const balloonSlot = 0x13

// memballoonPart is the balloon.
//
// +podvisor:entry
var memballoonPart = Part{
	Name: "memballoon", Build: memballoon,
	Devices: func(l *libvirtxml.DomainDeviceList) []Device {
		m := l.MemBalloon
		if m == nil || m.Model == "none" {
			return nil
		}
		return []Device{{
			Name: "the balloon", Address: &m.Address, At: OnRoot(balloonSlot, 0),
			Virtio: &Virtio{Model: &m.Model, Share: func() { m.Driver = &libvirtxml.DomainMemBalloonDriver{IOMMU: switchedOn} }},
		}}
	},
}

// memballoon adds the device that gives free memory of the guest back to the node
// and reports how much the guest uses, in the period of the cluster's settings. A
// negative period: never. libvirt adds one to a domain that says nothing of it.
func memballoon(b *Draft) error {
	if !isOn(b.Spec.Devices.AutoattachMemBalloon, true) {
		b.Domain.Devices.MemBalloon = &libvirtxml.DomainMemBalloon{Model: "none"}
		return nil
	}
	m := &libvirtxml.DomainMemBalloon{Model: nonTransitional, FreePageReporting: "on"}
	unwanted := b.VMI.Annotations[vmi.NoPageReportingAnnotation] == "true"
	if unwanted || b.dedicated() || b.Spec.Memory != nil && b.Spec.Memory.Hugepages != nil {
		m.FreePageReporting = "off" // reporting takes time of the processors, and huge pages are the pod's anyway
	}
	if p := b.Host.Settings.StatsPeriod; p >= 0 {
		m.Stats = &libvirtxml.DomainMemBalloonStats{Period: uint(cmp.Or(p, statsPeriod))}
	}
	b.Domain.Devices.MemBalloon = m
	return nil
}
