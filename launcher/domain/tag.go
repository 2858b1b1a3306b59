package domain

import (
	"fmt"
	"slices"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/storage/cloudinit"
	"github.com/podvisor/podvisor/vmi"
)

// Tagged are the devices of v that have a tag, with where the guest of a domain that
// is built on h finds them. Of h it needs what is known before the disks are made: the
// architecture, the places and the interfaces.
func Tagged(v *vmi.VirtualMachineInstance, h Host) []cloudinit.Device {
	if h.Arch == "" {
		h.Arch = archX86
	}
	b := &Draft{VMI: v, Spec: &v.Spec.Domain, Host: h}
	return slices.Concat(b.taggedDisks(), b.taggedInterfaces(), b.taggedHostDevices())
}

func (b *Draft) taggedDisks() []cloudinit.Device {
	var all []cloudinit.Device
	places := b.diskPlaces()
	for _, d := range b.Spec.Devices.Disks {
		if d.Tag == "" {
			continue
		}
		t := cloudinit.Device{Type: cloudinit.DeviceDisk, Bus: string(bus(d)), Serial: d.Serial, Tags: []string{d.Tag}}
		switch p := places[DiskAlias(d.Name)]; {
		case bus(d) == vmi.DiskBusVirtio:
			t.Bus, t.Address = onBus(p.PCI)
		case bus(d) == vmi.DiskBusSATA:
			n := number26(p.Target)
			t.Address = fmt.Sprintf("%d:0:0:%d", n/sataPorts, n%sataPorts)
		case p.Unit != nil:
			t.Address = fmt.Sprintf("0:0:0:%d", *p.Unit)
		}
		all = append(all, t)
	}
	return all
}

func (b *Draft) taggedInterfaces() []cloudinit.Device {
	var all []cloudinit.Device
	places := b.interfacePlaces()
	for _, i := range b.Spec.Devices.Interfaces {
		at := slices.IndexFunc(b.Host.Interfaces, func(a network.Attachment) bool { return a.Name == i.Name })
		if i.Tag == "" || at < 0 {
			continue
		}
		t := cloudinit.Device{Type: cloudinit.DeviceNIC, MAC: b.Host.Interfaces[at].MAC, Tags: []string{i.Tag}}
		t.Bus, t.Address = onBus(places[InterfaceAlias(i.Name)].PCI)
		all = append(all, t)
	}
	return all
}

// taggedHostDevices are the devices of the node, whose places are in their order.
func (b *Draft) taggedHostDevices() []cloudinit.Device {
	var all []cloudinit.Device
	n := 0
	add := func(name, tag string) {
		at := b.Host.Places[hostDeviceAlias(name)].PCI
		if at == nil && b.express() {
			at = port(hostPorts, n)
		}
		n++
		if tag != "" {
			t := cloudinit.Device{Type: cloudinit.DeviceHost, Tags: []string{tag}}
			t.Bus, t.Address = onBus(at)
			all = append(all, t)
		}
	}
	for _, g := range b.Spec.Devices.GPUs {
		add(g.Name, g.Tag)
	}
	for _, h := range b.Spec.Devices.HostDevices {
		add(h.Name, h.Tag)
	}
	return all
}

// onBus is the bus and the address of a device on the PCI bus. Empty: libvirt lays the
// bus of the guest out, so that the address is not known before.
func onBus(a *PCIAddress) (bus, address string) {
	if a == nil {
		return "", ""
	}
	return "pci", a.String()
}
