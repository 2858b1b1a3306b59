package domain

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// on is a disk of this name on a bus.
func on(b vmi.DiskBus, name string) vmi.Disk {
	return vmi.Disk{Name: name, Disk: &vmi.DiskTarget{Bus: b}}
}

func TestWithoutKnownPlacesTheOrderOfTheSpecDecides(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]Place{
		"ua-v1": {Target: "vda", PCI: port(diskPorts, 0)},
		"ua-a1": {Target: "sda"},
		"ua-s1": {Target: "sdb", Unit: new(uint(0))},
		"ua-v2": {Target: "vdb", PCI: port(diskPorts, 1)},
		"ua-s2": {Target: "sdc", Unit: new(uint(1))},
		"ua-a2": {Target: "sdd"},
	}, DiskPlaces([]vmi.Disk{
		on(vmi.DiskBusVirtio, "v1"), on(vmi.DiskBusSATA, "a1"), on(vmi.DiskBusSCSI, "s1"),
		on(vmi.DiskBusVirtio, "v2"), on(vmi.DiskBusSCSI, "s2"), {Name: "a2"},
	}, nil))
}

func TestAfterTheLastLetterThereAreTwo(t *testing.T) {
	t.Parallel()
	var specs []vmi.Disk
	for n := range 28 {
		specs = append(specs, on(vmi.DiskBusVirtio, fmt.Sprint(n)))
	}
	got := DiskPlaces(specs, nil)
	for n, want := range map[string]string{"0": "vda", "25": "vdz", "26": "vdaa", "27": "vdab"} {
		require.Equal(t, want, got[DiskAlias(n)].Target)
	}
}

func TestNoDiskMovesWhenAnotherIsRemovedOrAdded(t *testing.T) {
	t.Parallel()
	for _, b := range []vmi.DiskBus{vmi.DiskBusVirtio, vmi.DiskBusSATA, vmi.DiskBusSCSI} {
		before := DiskPlaces([]vmi.Disk{on(b, "a"), on(b, "b"), on(b, "c")}, nil)

		removed := DiskPlaces([]vmi.Disk{on(b, "a"), on(b, "c")}, map[string]Place{"ua-a": before["ua-a"], "ua-c": before["ua-c"]})
		require.Equal(t, before["ua-a"], removed["ua-a"], b)
		require.Equal(t, before["ua-c"], removed["ua-c"], b)

		added := DiskPlaces([]vmi.Disk{on(b, "new"), on(b, "c"), on(b, "a"), on(b, "newer")}, removed)
		require.Equal(t, before["ua-a"], added["ua-a"], b)
		require.Equal(t, before["ua-c"], added["ua-c"], b)
		require.Equal(t, before["ua-b"], added["ua-new"], "the lowest that is free, on %s", b)
		require.NotContains(t, before, added["ua-newer"], b)
	}
}

func TestAPlaceIsNotFreeBeforeItsDeviceIsDetached(t *testing.T) {
	t.Parallel()
	before := DiskPlaces([]vmi.Disk{on(vmi.DiskBusSCSI, "a"), on(vmi.DiskBusSCSI, "b")}, nil)
	require.Equal(t, map[string]Place{
		"ua-b":   {Target: "sdb", Unit: new(uint(1))},
		"ua-new": {Target: "sdc", Unit: new(uint(2))},
	}, DiskPlaces([]vmi.Disk{on(vmi.DiskBusSCSI, "b"), on(vmi.DiskBusSCSI, "new")}, before))
}

func TestAPlaceThatIsWrongForTheDiskIsNotKept(t *testing.T) {
	t.Parallel()
	pci := &PCIAddress{Bus: 3}
	for name, tt := range map[string]struct {
		specs []vmi.Disk
		known map[string]Place
		want  map[string]Place
	}{
		"of another bus": {[]vmi.Disk{on(vmi.DiskBusVirtio, "a")}, map[string]Place{"ua-a": {Target: "sdb", Unit: new(uint(3))}}, map[string]Place{"ua-a": {Target: "vda", PCI: port(diskPorts, 0)}}},
		"no name of a disk": {[]vmi.Disk{on(vmi.DiskBusVirtio, "a"), on(vmi.DiskBusVirtio, "b")}, map[string]Place{"ua-a": {Target: "vd"}, "ua-b": {Target: "vd1"}},
			map[string]Place{"ua-a": {Target: "vda", PCI: port(diskPorts, 0)}, "ua-b": {Target: "vdb", PCI: port(diskPorts, 1)}}},
		"of two disks": {[]vmi.Disk{on(vmi.DiskBusSCSI, "a"), on(vmi.DiskBusSCSI, "b")}, map[string]Place{"ua-a": {Target: "sdb", Unit: new(uint(1))}, "ua-b": {Target: "sdb", Unit: new(uint(1))}},
			map[string]Place{"ua-a": {Target: "sdb", Unit: new(uint(1))}, "ua-b": {Target: "sda", Unit: new(uint(0))}}},
		"a PCI address of a SATA disk": {[]vmi.Disk{on(vmi.DiskBusSATA, "a")}, map[string]Place{"ua-a": {Target: "sdc", PCI: pci}}, map[string]Place{"ua-a": {Target: "sdc"}}},
		"a target alone, on SCSI":      {[]vmi.Disk{on(vmi.DiskBusSCSI, "a")}, map[string]Place{"ua-a": {Target: "sdc"}}, map[string]Place{"ua-a": {Target: "sdc", Unit: new(uint(0))}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, DiskPlaces(tt.specs, tt.known))
		})
	}
}

func TestPlacesStayThroughAnyChanges(t *testing.T) {
	t.Parallel()
	buses := []vmi.DiskBus{vmi.DiskBusVirtio, vmi.DiskBusSATA, vmi.DiskBusSCSI}
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 2))
		var specs []vmi.Disk
		known := map[string]Place{}
		for step := range 40 {
			if len(specs) > 0 && r.IntN(2) == 0 {
				gone := r.IntN(len(specs))
				delete(known, DiskAlias(specs[gone].Name))
				specs = slices.Delete(specs, gone, gone+1)
			} else {
				specs = slices.Insert(specs, r.IntN(len(specs)+1), on(buses[r.IntN(3)], fmt.Sprint("disk", step)))
			}
			got := DiskPlaces(specs, known)
			targets, units := map[string]bool{}, map[uint]bool{}
			for _, d := range specs {
				p := got[DiskAlias(d.Name)]
				require.NotEmpty(t, p.Target)
				require.False(t, targets[p.Target], "target %s is given twice", p.Target)
				targets[p.Target] = true
				require.Equal(t, d.Disk.Bus == vmi.DiskBusSCSI, p.Unit != nil)
				if p.Unit != nil {
					require.False(t, units[*p.Unit], "unit %d is given twice", *p.Unit)
					units[*p.Unit] = true
				}
			}
			for alias, p := range known {
				require.Equal(t, p, got[alias], alias)
			}
			known = got
		}
	}
}

func TestADomainThatIsBuiltAgainKeepsTheAddressesOfLibvirt(t *testing.T) {
	t.Parallel()
	v := instance(disksOn(vmi.DiskBusVirtio, vmi.DiskBusSCSI, vmi.DiskBusVirtio, vmi.DiskBusSCSI), interfaces(vmi.Interface{Name: "default"}))
	d, err := Build(v, host(v))
	require.NoError(t, err)
	// A domain may run since the time when libvirt gave the addresses.
	at := func(bus uint) *libvirtxml.DomainAddress { return pciAddress(&PCIAddress{Bus: bus}) }
	d.Devices.Disks[0].Address, d.Devices.Disks[2].Address, d.Devices.Interfaces[0].Address = at(4), at(7), at(2)
	running := reread(t, d)
	places := map[string]Place{
		"ua-diska":       {Target: "vda", PCI: &PCIAddress{Bus: 4}},
		"ua-diskb":       {Target: "sda", Unit: new(uint(0))},
		"ua-diskc":       {Target: "vdb", PCI: &PCIAddress{Bus: 7}},
		"ua-diskd":       {Target: "sdb", Unit: new(uint(1))},
		"ua-net_default": {PCI: &PCIAddress{Bus: 2}},
	}

	v.Spec.Domain.Devices.Disks = v.Spec.Domain.Devices.Disks[2:]
	again, err := Build(v, host(v, func(h *Host) { h.Places = places }))
	require.NoError(t, err)
	require.Equal(t, running.Devices.Disks[2:], reread(t, again).Devices.Disks)
	require.Equal(t, running.Devices.Interfaces, reread(t, again).Devices.Interfaces)
}

// reread is d as it is read from its XML.
func reread(t *testing.T, d *libvirtxml.Domain) *libvirtxml.Domain {
	t.Helper()
	xml, err := d.Marshal()
	require.NoError(t, err)
	var out libvirtxml.Domain
	require.NoError(t, out.Unmarshal(xml))
	return &out
}

func TestStatusPlacesAreTheTargetsOfTheStatus(t *testing.T) {
	t.Parallel()
	v := instance(disksOn(vmi.DiskBusVirtio, vmi.DiskBusVirtio))
	v.Status.VolumeStatus = []vmi.VolumeStatus{{Name: "diskb", Target: "vda"}, {Name: "cloudinit"}}
	require.Equal(t, map[string]Place{"ua-diskb": {Target: "vda"}, "ua-cloudinit": {}}, StatusPlaces(v))
	d, err := Build(v, host(v, func(h *Host) { h.Places = StatusPlaces(v) }))
	require.NoError(t, err)
	require.Equal(t, "vdb", d.Devices.Disks[0].Target.Dev)
	require.Equal(t, "vda", d.Devices.Disks[1].Target.Dev)
}

func TestADiskAndAnInterfaceMayHaveOneName(t *testing.T) {
	t.Parallel()
	v := instance(disksOn(vmi.DiskBusVirtio), interfaces(vmi.Interface{Name: "diska"}))
	d, err := Build(v, host(v))
	require.NoError(t, err)
	require.NotEqual(t, d.Devices.Disks[0].Alias, d.Devices.Interfaces[0].Alias, "libvirt refuses two devices with one alias")
}
