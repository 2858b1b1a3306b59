package validate

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/internal/vmi/pci"
	"github.com/podvisor/podvisor/vmi"
)

// seat is a device on the PCI bus of a guest.
type seat struct {
	at *field.Path
	// address is the one that the spec names, or nil, and field is where.
	address *pci.Address
	field   *field.Path
}

// places checks that each device which the spec describes has a place on the PCI bus of
// the guest, and that those which the user chooses are free. annotations are the VMI's.
func places(spec *field.Path, s *vmi.VirtualMachineInstanceSpec, annotations map[string]string) field.ErrorList {
	dev, d := spec.Child("domain", "devices"), &s.Domain.Devices
	p := placing{flat: pci.Flat(annotations, d), taken: map[pci.Address]*field.Path{}}
	var disks, cards []seat
	for i := range d.Disks {
		k, here := &d.Disks[i], dev.Child("disks").Index(i)
		if name, b := busOf(k); name == "disk" && b == vmi.DiskBusVirtio {
			disks = append(disks, p.named(here, here.Child("disk", "pciAddress"), pciOf(k), false))
		}
	}
	for i := range d.Interfaces {
		n, here := &d.Interfaces[i], dev.Child("interfaces").Index(i)
		cards = append(cards, p.named(here, here.Child("pciAddress"), n.PciAddress, pci.Conventional(n.Model) && !n.IsDevice()))
	}
	for i, k := range disks {
		at := pci.Port(pci.Disks, i)
		if p.flat {
			at = pci.Of(pci.DiskSlots(), i)
		}
		p.given(k, at, "disks on the bus virtio")
	}
	mine := map[pci.Address]bool{}
	for _, c := range cards {
		if c.address != nil {
			mine[*c.address] = true
		}
	}
	for i, c := range cards {
		if c.address != nil {
			continue
		}
		var at *pci.Address
		for _, a := range pci.Candidates(i, p.flat || pci.Conventional(d.Interfaces[i].Model)) {
			if !mine[*a] {
				at, mine[*a] = a, true
				break
			}
		}
		p.given(c, at, "interfaces")
	}
	for i := range len(d.GPUs) + len(d.HostDevices) {
		here := dev.Child("gpus").Index(i)
		if n := i - len(d.GPUs); n >= 0 {
			here = dev.Child("hostDevices").Index(n)
		}
		at := pci.Port(pci.HostDevices, i)
		if p.flat {
			at = nil
		}
		p.given(seat{at: here}, at, "devices of the node")
	}
	if n := len(d.Filesystems); n > pci.Functions {
		p.faults = append(p.faults, field.TooMany(dev.Child("filesystems"), n, pci.Functions))
	}
	virtio := 0
	for _, i := range d.Inputs {
		if i.Bus == vmi.InputBusVirtio {
			virtio++
		}
	}
	if virtio > pci.Functions {
		p.faults = append(p.faults, field.Invalid(dev.Child("inputs"), plural(virtio, "input device")+" on the bus virtio",
			fmt.Sprintf("must be at most %d: give others the bus usb", pci.Functions)))
	}
	return p.faults
}

func pciOf(d *vmi.Disk) string {
	if d.Disk == nil {
		return ""
	}
	return d.Disk.PciAddress
}

// placing gives out places.
type placing struct {
	flat   bool
	taken  map[pci.Address]*field.Path
	faults field.ErrorList
}

// named is a device with the address that the spec names for it, if that is one.
func (p *placing) named(device, at *field.Path, address string, root bool) seat {
	if address == "" || !pciAddress.MatchString(address) {
		return seat{at: device}
	}
	a := pci.Parse(address)
	fault := func(why string) { p.faults = append(p.faults, field.Invalid(at, address, why)) }
	slots := pci.CardSlots()
	if p.flat {
		slots = append(slots, pci.DiskSlots()...)
	}
	switch other := p.taken[*a]; {
	case a.Domain != 0:
		fault("must begin with 0000: guests have no other PCI domain")
	case p.flat && a.Bus != 0:
		fault("must be on bus 00: all devices of this guest are, by its annotation or useVirtioTransitional")
	case root && a.Bus != 0:
		fault("must be on bus 00: a card of this model cannot be behind a PCI Express port. Leave the address out, or give it the model virtio")
	case a.Bus != 0 && (pci.PortsUpTo(a.Bus) == 0 || a.Slot != 0 || a.Function != 0):
		fault(fmt.Sprintf("must be 00.0 of a bus from 01 to %02x: the guest has no other. Leave it out to get one that is free", pci.AllPorts()))
	case a.Bus == 0 && (!slices.Contains(slots, a.Slot) || a.Function != 0):
		fault("must not be on bus 00, whose slots are those of other devices, but for function 0 of the slots " + hex(slots) + ": leave it out to get one that is free")
	case other != nil:
		fault("is the address of " + other.String() + " too: choose another, or leave it out")
	default:
		p.taken[*a] = at
		return seat{at: device, address: a, field: at}
	}
	return seat{at: device, address: a, field: at}
}

// given gives a device its own place, unless the spec names another.
func (p *placing) given(s seat, own *pci.Address, kind string) {
	if s.address != nil {
		return
	}
	if own == nil {
		p.faults = append(p.faults, field.Invalid(s.at, field.OmitValueType{},
			"the PCI bus of the guest has no room for so many "+kind+": remove some, or give disks the bus scsi and interfaces the model virtio"))
		return
	}
	if other := p.taken[*own]; other != nil {
		p.faults = append(p.faults, field.Invalid(other, own.String(), "is the address of "+s.at.String()+": choose another, or leave it out"))
		return
	}
	p.taken[*own] = s.at
}

// hex are numbers of slots as lspci writes them.
func hex(slots []uint) string {
	slots = slices.Sorted(slices.Values(slots))
	names := make([]string, len(slots))
	for i, s := range slots {
		names[i] = fmt.Sprintf("%02x", s)
	}
	return alternatives(names)
}
