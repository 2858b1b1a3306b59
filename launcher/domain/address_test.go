package domain

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/internal/vmi/pci"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// full is a list of devices with as many of each kind on bus 0 as there can be.
func full() *libvirtxml.DomainDeviceList {
	l := &libvirtxml.DomainDeviceList{
		Videos: make([]libvirtxml.DomainVideo, 1), RNGs: make([]libvirtxml.DomainRNG, 1), Watchdogs: make([]libvirtxml.DomainWatchdog, 1),
		Sounds: make([]libvirtxml.DomainSound, 1), Panics: []libvirtxml.DomainPanic{{Model: string(vmi.PanicDevicePVPanic)}},
		MemBalloon: &libvirtxml.DomainMemBalloon{}, VSock: &libvirtxml.DomainVSock{},
		Filesystems: make([]libvirtxml.DomainFilesystem, functions), Inputs: make([]libvirtxml.DomainInput, functions),
		Controllers: []libvirtxml.DomainController{controller("usb", 0, ""), controller("scsi", 0, ""), controller("virtio-serial", 0, "")},
	}
	for n := range sataControllers {
		l.Controllers = append(l.Controllers, controller("sata", uint(n), ""))
	}
	for n := range l.Inputs {
		l.Inputs[n].Bus = string(vmi.InputBusVirtio)
	}
	return l
}

func TestEachSlotOfTheRootComplexHasOneUse(t *testing.T) {
	t.Parallel()
	used := map[uint]string{0: "q35", 0x1f: "q35"}
	use := func(slot uint, by string) {
		require.Empty(t, used[slot], "slot %#x, %s", slot, by)
		require.Less(t, slot, uint(32))
		used[slot] = by
	}
	at := map[PCIAddress]string{}
	for _, p := range Parts() {
		its := map[uint]bool{}
		b := &Draft{Host: Host{Parts: []Part{p}}, Domain: &libvirtxml.Domain{Devices: full()}}
		for _, d := range b.onPCI() {
			require.NotNil(t, d.At, d.Name)
			require.Empty(t, at[*d.At], d.Name)
			at[*d.At] = d.Name
			if d.At.Slot != spareSlot || d.At.Function == 0 {
				its[d.At.Slot] = true
				continue
			}
			require.Less(t, d.At.Function, uint(firstSpare), d.Name)
		}
		for slot := range its {
			use(slot, p.Name)
		}
	}
	for _, slot := range cardSlots {
		use(slot, "cards")
	}
	for n := range allPorts() {
		if n%functions == 0 {
			use(portsSlot+uint(n)/functions, "ports")
		}
	}
	require.Len(t, used, 32, "each slot has a use")
	for _, slot := range diskSlots {
		require.True(t, slot >= portsSlot && slot < portsSlot+uint(len(diskSlots)), "a disk without a port is where a port would be")
	}
}

func TestTheSparePlacesAreFewAndFound(t *testing.T) {
	t.Parallel()
	require.Equal(t, []*PCIAddress{{Slot: serialSlot, Function: 4}, {Slot: serialSlot, Function: 7}}, []*PCIAddress{Spare(0), Spare(3)}, "guests know devices by these numbers: they do not change")
	require.Nil(t, Spare(4))
	require.Nil(t, Spare(-1))
	least := instance(func(v *vmi.VirtualMachineInstance) {
		d := &v.Spec.Domain.Devices
		d.AutoattachGraphicsDevice, d.AutoattachSerialConsole, d.AutoattachMemBalloon, d.DisableHotplug = new(false), new(false), new(false), true
	})
	at, err := located(t, least)
	require.NoError(t, err)
	require.Equal(t, "0000:00:12.0", at["controller virtio-serial 0"], "a guest looks for other functions only where it finds the first")
}

func TestEachPortHasOneUse(t *testing.T) {
	t.Parallel()
	used := map[uint]bool{}
	for _, u := range []pci.Use{interfacePorts, diskPorts, hostPorts} {
		for n := 0; port(u, n) != nil; n++ {
			bus := port(u, n).Bus
			require.False(t, used[bus], "%s %d", u, n)
			used[bus] = true
			require.GreaterOrEqual(t, portsUpTo(bus), int(bus))
		}
	}
	require.Len(t, used, portsUpTo(uint(len(used))))
	require.LessOrEqual(t, len(used), len(diskSlots)*functions)
	require.Zero(t, portsUpTo(uint(len(used))+1))
	require.Equal(t, []*PCIAddress{{Bus: 1}, {Bus: 4}, {Bus: 5}, {Bus: 8}},
		[]*PCIAddress{port(interfacePorts, 0), port(interfacePorts, 3), port(diskPorts, 0), port(diskPorts, 3)}, "guests know devices by these numbers: they do not change")
}

// devicesOnPCI are the devices of a domain on the PCI bus but for its ports.
func devicesOnPCI(d *libvirtxml.Domain) []Device {
	return (&Draft{Host: Host{Parts: Parts()}, Domain: d}).onPCI()
}

// located are the addresses of the devices of a domain, by their names.
func located(t *testing.T, v *vmi.VirtualMachineInstance, change ...func(*Host)) (map[string]string, error) {
	t.Helper()
	d, err := Build(v, host(v, change...))
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, device := range devicesOnPCI(d) {
		a := (*device.Address).PCI
		all[device.Name] = PCIAddress{Domain: number(a.Domain), Bus: number(a.Bus), Slot: number(a.Slot), Function: number(a.Function)}.String()
	}
	for _, c := range d.Devices.Controllers {
		if c.PCI != nil && c.Address != nil {
			all[fmt.Sprintf("port %d", *c.Index)] = PCIAddress{Slot: *c.Address.PCI.Slot, Function: *c.Address.PCI.Function}.String()
		}
	}
	for _, d := range d.Devices.Disks {
		if a := d.Address; a != nil && a.Drive != nil {
			all[d.Alias.Name] = fmt.Sprint("unit ", *a.Drive.Unit)
		}
	}
	for i, d := range d.Devices.Inputs {
		if d.Address.USB != nil {
			all[fmt.Sprint("USB input ", i)] = d.Address.USB.Port
		}
	}
	taken := map[string]string{}
	for name, at := range all {
		require.Empty(t, taken[at], "%s and %s have one address", name, taken[at])
		taken[at] = name
	}
	return all, nil
}

// changes are what may be added to a VMI beside, or at the end of, what it has.
var changes = []func(*vmi.VirtualMachineInstance){
	func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.Rng = &vmi.Rng{} },
	func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.Sound = &vmi.Sound{Name: "s"} },
	func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Devices.Watchdog = &vmi.Watchdog{Name: "w", WatchdogDevice: vmi.WatchdogDevice{I6300ESB: &vmi.I6300ESBWatchdog{}}}
	},
	func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.AutoattachGraphicsDevice = new(false) },
	func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.AutoattachMemBalloon = new(false) },
	func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.AutoattachSerialConsole = new(false) },
	func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.PanicDevices = []vmi.PanicDevice{{}} },
	func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.AutoattachVSOCK = new(true) },
	func(v *vmi.VirtualMachineInstance) { addInput(v, vmi.InputBusUSB) },
	func(v *vmi.VirtualMachineInstance) { addInput(v, vmi.InputBusVirtio) },
	func(v *vmi.VirtualMachineInstance) { addDisk(v, vmi.DiskBusVirtio) },
	func(v *vmi.VirtualMachineInstance) { addDisk(v, vmi.DiskBusSATA) },
	func(v *vmi.VirtualMachineInstance) { addDisk(v, vmi.DiskBusSCSI) },
	func(v *vmi.VirtualMachineInstance) { addInterface(v, vmi.InterfaceModelVirtio) },
	func(v *vmi.VirtualMachineInstance) { addInterface(v, vmi.InterfaceModelE1000) },
	func(v *vmi.VirtualMachineInstance) { addInterface(v, vmi.InterfaceModelE1000e) },
}

func addInput(v *vmi.VirtualMachineInstance, bus vmi.InputBus) {
	l := &v.Spec.Domain.Devices.Inputs
	*l = append(*l, vmi.Input{Name: fmt.Sprint("input", len(*l)), Type: vmi.InputTablet, Bus: bus})
}

func addDisk(v *vmi.VirtualMachineInstance, bus vmi.DiskBus) {
	l := &v.Spec.Domain.Devices.Disks
	*l = append(*l, on(bus, fmt.Sprint("disk", len(*l))))
}

func addInterface(v *vmi.VirtualMachineInstance, m vmi.InterfaceModel) {
	l := &v.Spec.Domain.Devices.Interfaces
	*l = append(*l, vmi.Interface{Name: fmt.Sprint("net", len(*l)), Model: m})
}

func TestNoDeviceMovesWhenAnotherIsAdded(t *testing.T) {
	t.Parallel()
	longest := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		v := instance(func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.Devices.UseVirtioTransitional = new(seed%6 == 5)
		})
		before, err := located(t, v)
		require.NoError(t, err)
		for step := 0; ; step++ {
			longest = max(longest, step)
			changes[r.IntN(len(changes))](v)
			after, err := located(t, v)
			if err != nil {
				require.ErrorIs(t, err, vmi.ErrInvalid)
				require.ErrorContains(t, err, "room")
				break
			}
			for name, at := range before {
				if now, ok := after[name]; ok {
					require.Equal(t, at, now, "%s, seed %d, step %d", name, seed, step)
				}
			}
			before = after
		}
	}
	require.Greater(t, longest, 40)
}

func TestAnInterfaceThatIsAttachedLaterMovesNoOther(t *testing.T) {
	t.Parallel()
	known := interfacePlaces([]vmi.Interface{{Name: "a"}, {Name: "b"}, {Name: "c"}}, nil, false)
	delete(known, InterfaceAlias("a"))
	got := interfacePlaces([]vmi.Interface{{Name: "b"}, {Name: "c"}, {Name: "d"}, {Name: "e"}}, known, false)
	require.Equal(t, map[string]Place{
		"ua-net_b": {PCI: &PCIAddress{Bus: 2}}, "ua-net_c": {PCI: &PCIAddress{Bus: 3}},
		"ua-net_d": {PCI: &PCIAddress{Bus: 1}}, "ua-net_e": {PCI: &PCIAddress{Bus: 4}},
	}, got)
}

func TestAnAddressThatASpecNamesMustBeFree(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		address string
		want    string
	}{
		"of the graphics card":             {"0000:00:01.0", "is that of the graphics card: choose another"},
		"of the other disk":                {"0000:06:00.0", "is that of disk"},
		"of a port":                        {"0000:00:02.3", "is that of a port: choose another"},
		"of a bus that no guest has":       {"0000:81:00.0", "has those of bus 00, and 00.0 of the buses 01 to 40"},
		"of a device that no port has":     {"0000:07:01.0", "the guest has no PCI address 0000:07:01.0"},
		"of another domain":                {"0001:07:00.0", "the guest has no PCI address 0001:07:00.0"},
		"of a port that is used otherwise": {"0000:01:00.0", "is that of"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := instance(disksOn(vmi.DiskBusVirtio, vmi.DiskBusVirtio), interfaces(vmi.Interface{Name: "default"}))
			v.Spec.Domain.Devices.Disks[0].Disk.PciAddress = tt.address
			_, err := Build(v, host(v))
			require.ErrorIs(t, err, vmi.ErrInvalid)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestAGuestKeepsPortsForDisksThatAreAttachedLater(t *testing.T) {
	t.Parallel()
	for disks, want := range map[int]int{0: 8, 2: 8, 3: 12, 6: 12, 7: 24} {
		v := instance(disksOn(slices.Repeat([]vmi.DiskBus{vmi.DiskBusVirtio}, disks)...))
		at, err := located(t, v)
		require.NoError(t, err)
		ports := 0
		for name := range at {
			if strings.HasPrefix(name, "port ") {
				ports++
			}
		}
		require.Equal(t, want, ports, "%d disks", disks)
	}
}

func TestWithoutPortsEveryDeviceIsOnTheRootComplex(t *testing.T) {
	t.Parallel()
	v := instance(optionalDevices, disksOn(vmi.DiskBusVirtio, vmi.DiskBusVirtio), interfaces(vmi.Interface{Name: "default"}))
	v.Annotations = map[string]string{vmi.RootComplexAnnotation: "true"}
	all, err := located(t, v)
	require.NoError(t, err)
	require.NotContains(t, all, "port 1")
	for name, at := range all {
		require.True(t, !strings.Contains(at, ":") || strings.HasPrefix(at, "0000:00:"), "%s is at %s", name, at)
	}
	v.Spec.Domain.Devices.Disks[0].Disk.PciAddress = "0000:01:00.0"
	_, err = located(t, v)
	require.ErrorContains(t, err, "all its devices are on bus 00")
}

func TestHostDevicesAndFileSystemsGetAddressesTheyDoNotShare(t *testing.T) {
	t.Parallel()
	b := &Draft{VMI: instance(), Spec: &vmi.DomainSpec{}, Host: Host{Arch: archX86, Parts: Parts()}, Domain: &libvirtxml.Domain{Devices: &libvirtxml.DomainDeviceList{
		Hostdevs: []libvirtxml.DomainHostdev{
			{SubsysPCI: &libvirtxml.DomainHostdevSubsysPCI{}}, {SubsysUSB: &libvirtxml.DomainHostdevSubsysUSB{}}, {SubsysMDev: &libvirtxml.DomainHostdevSubsysMDev{}},
		},
		Filesystems: []libvirtxml.DomainFilesystem{{}, {}},
		VSock:       &libvirtxml.DomainVSock{},
	}}}
	require.NoError(t, addresses(b))
	l := b.Domain.Devices
	require.Equal(t, pciAddress(port(hostPorts, 0)), l.Hostdevs[0].Address)
	require.Nil(t, l.Hostdevs[1].Address, "it is on no PCI bus")
	require.Equal(t, pciAddress(port(hostPorts, 1)), l.Hostdevs[2].Address)
	require.Equal(t, "on", l.Filesystems[0].Address.PCI.MultiFunction)
	require.Equal(t, uint(1), *l.Filesystems[1].Address.PCI.Function)
	require.Equal(t, pciAddress(OnRoot(vsockSlot, 0)), l.VSock.Address)
	require.Len(t, l.Controllers, 1+portsUpTo(port(hostPorts, 1).Bus))
}

func TestTheDeviceWhoseAddressWasChosenIsTheOneThatIsWrong(t *testing.T) {
	t.Parallel()
	for _, at := range []struct{ address, of string }{
		{"0000:00:01.0", "the graphics card"}, {"0000:00:12.0", "controller virtio-serial 0"}, {"0000:00:15.0", "the watchdog"},
	} {
		v := instance(optionalDevices)
		v.Spec.Domain.Devices.Disks = []vmi.Disk{{Name: "a", Disk: &vmi.DiskTarget{Bus: vmi.DiskBusVirtio, PciAddress: at.address}}}
		_, err := Build(v, host(v))
		require.ErrorContains(t, err, "disk a: its PCI address "+at.address+" is that of "+at.of+": choose another")
	}
}

func TestAMachineTypeWithoutPortsIsLaidOutByLibvirt(t *testing.T) {
	t.Parallel()
	for _, change := range []func(*vmi.VirtualMachineInstance){
		architecture("s390x", "s390-ccw-virtio"),
		func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Machine = &vmi.Machine{Type: "pc-i440fx-7.2"} },
	} {
		v := instance(disksOn(vmi.DiskBusVirtio), interfaces(vmi.Interface{Name: "default"}), change)
		d, err := Build(v, host(v))
		require.NoError(t, err)
		for _, device := range devicesOnPCI(d) {
			require.Nil(t, *device.Address, device.Name)
		}
	}
}

// BenchmarkBuild builds the domain of a VMI with what most have.
func BenchmarkBuild(b *testing.B) {
	v := instance(disksOn(vmi.DiskBusVirtio, vmi.DiskBusVirtio), interfaces(vmi.Interface{Name: "default"}), optionalDevices)
	v.Spec.Domain.Memory.Guest = new(resource.MustParse("1Gi"))
	h := host(v)
	for name, d := range h.Disks {
		d.Format = storage.QCOW2
		h.Disks[name] = d
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Build(v, h); err != nil {
			b.Fatal(err)
		}
	}
}
