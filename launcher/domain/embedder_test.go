package domain

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// foreign is a kind of device of another program, of which the domain has some, each at
// its own place.
func foreign(places ...*PCIAddress) Part {
	return Part{
		Name: "foreign",
		Build: func(d *Draft) error {
			for n := range places {
				d.Domain.Devices.Shmems = append(d.Domain.Devices.Shmems, libvirtxml.DomainShmem{Name: fmt.Sprint("part", n), Model: &libvirtxml.DomainShmemModel{Type: "ivshmem-plain"}})
			}
			return nil
		},
		Devices: func(l *libvirtxml.DomainDeviceList) []Device {
			return devicesOf(l.Shmems, func(n int, s *libvirtxml.DomainShmem) Device {
				return Device{Name: "foreign " + s.Name, Address: &s.Address, At: places[n]}
			})
		},
	}
}

func TestADeviceOfAnotherProgramHasAPlaceOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*vmi.VirtualMachineInstance){
		"with ports": func(*vmi.VirtualMachineInstance) {},
		"on bus 0 alone": func(v *vmi.VirtualMachineInstance) {
			v.Annotations = map[string]string{vmi.RootComplexAnnotation: "true"}
		},
		"of legacy devices":     func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.UseVirtioTransitional = new(true) },
		"without what can plug": func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.DisableHotplug = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := instance(disksOn(vmi.DiskBusVirtio, vmi.DiskBusSATA, vmi.DiskBusSCSI), interfaces(vmi.Interface{Name: "default"}), change)
			before, err := located(t, v)
			require.NoError(t, err)
			d, err := Build(v, host(v, func(h *Host) { h.Parts = append(Parts(), foreign(Spare(0), Spare(1), Spare(2), Spare(3))) }))
			require.NoError(t, err)
			for n, s := range d.Devices.Shmems {
				a := s.Address.PCI
				require.Equal(t, *Spare(n), PCIAddress{Bus: *a.Bus, Slot: *a.Slot, Function: *a.Function})
			}
			after, err := located(t, v, func(h *Host) { h.Parts = append(Parts(), foreign(Spare(0), Spare(1), Spare(2), Spare(3))) })
			require.NoError(t, err)
			for device, at := range before {
				require.Equal(t, at, after[device], "%s keeps its place", device)
			}
		})
	}
}

func TestADeviceOfAnotherProgramWithoutAPlaceIsNamed(t *testing.T) {
	t.Parallel()
	v := instance(interfaces(vmi.Interface{Name: "default"}))
	_, err := Build(v, host(v, func(h *Host) { h.Parts = append(Parts(), foreign(Spare(4))) }))
	require.ErrorContains(t, err, "foreign part0: the PCI bus of the guest has no room for it")
	_, err = Build(v, host(v, func(h *Host) { h.Parts = append(Parts(), foreign(Spare(0), Spare(0))) }))
	require.ErrorContains(t, err, "foreign part1: its PCI address 0000:00:12.4 is that of foreign part0")
	require.ErrorIs(t, err, vmi.ErrInvalid)
}
