package domain

import (
	"testing"

	"github.com/stretchr/testify/require"
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/storage/cloudinit"
	"github.com/podvisor/podvisor/vmi"
)

// tagged has two devices of each kind that can have a tag, and tags the second.
func tagged(v *vmi.VirtualMachineInstance) {
	disksOn(vmi.DiskBusVirtio, vmi.DiskBusVirtio, vmi.DiskBusSCSI, vmi.DiskBusSCSI, vmi.DiskBusSATA, vmi.DiskBusSATA, vmi.DiskBusUSB)(v)
	interfaces(vmi.Interface{Name: "default"}, vmi.Interface{Name: "second", Tag: "fast"})(v)
	d := &v.Spec.Domain.Devices
	for n, tag := range map[int]string{1: "data", 3: "log", 5: "backup", 6: "key"} {
		d.Disks[n].Tag = tag
	}
	d.Disks[1].Serial = "S1"
	d.GPUs = []vmi.GPU{{Name: "g", DeviceName: "x.org/a", Tag: "compute"}}
	d.HostDevices = []vmi.HostDevice{{Name: "h", DeviceName: "x.org/a"}, {Name: "i", DeviceName: "x.org/a", Tag: "crypto"}}
}

func TestATaggedDeviceHasTheAddressThatTheDomainGivesIt(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*vmi.VirtualMachineInstance){
		"behind ports": func(*vmi.VirtualMachineInstance) {},
		"at addresses of the user's": func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.Devices.Disks[1].Disk.PciAddress = "0000:0c:00.0"
			v.Spec.Domain.Devices.Interfaces[1].PciAddress = "0000:04:00.0"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := instance(tagged, change)
			h := host(v, func(h *Host) {
				h.HostDevices = map[string]string{"PCI_RESOURCE_X_ORG_A": "0000:81:00.0,0000:82:00.0,0000:83:00.0"}
			})
			d, err := Build(v, h)
			require.NoError(t, err)
			h.Disks, h.HostDevices = nil, nil // not known yet when the configuration drive is made
			l := d.Devices
			at := func(a *libvirtxml.DomainAddress) string {
				return PCIAddress{Domain: *a.PCI.Domain, Bus: *a.PCI.Bus, Slot: *a.PCI.Slot, Function: *a.PCI.Function}.String()
			}
			require.Equal(t, "sdd", l.Disks[5].Target.Dev)
			require.Equal(t, uint(1), *l.Disks[3].Address.Drive.Unit)
			require.Equal(t, []cloudinit.Device{
				{Type: "disk", Bus: "pci", Address: at(l.Disks[1].Address), Serial: "S1", Tags: []string{"data"}},
				{Type: "disk", Bus: "scsi", Address: "0:0:0:1", Tags: []string{"log"}},
				{Type: "disk", Bus: "sata", Address: "0:0:0:3", Tags: []string{"backup"}},
				{Type: "disk", Bus: "usb", Tags: []string{"key"}},
				{Type: "nic", Bus: "pci", Address: at(l.Interfaces[1].Address), MAC: "02:00:00:00:00:01", Tags: []string{"fast"}},
				{Type: "hostdev", Bus: "pci", Address: at(l.Hostdevs[0].Address), Tags: []string{"compute"}},
				{Type: "hostdev", Bus: "pci", Address: at(l.Hostdevs[2].Address), Tags: []string{"crypto"}},
			}, Tagged(v, h))
		})
	}
}

func TestATaggedDeviceOfABusThatLibvirtLaysOutHasNoAddress(t *testing.T) {
	t.Parallel()
	v := instance(tagged, func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Machine = &vmi.Machine{Type: "pc"} })
	for _, d := range Tagged(v, host(v)) {
		if d.Bus == "" {
			require.Empty(t, d.Address, d)
		}
		require.NotEqual(t, "pci", d.Bus, d)
	}
}
