package domain

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/golden"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// moving is the instance of testdata/moved/source.xml.
func moving(v *vmi.VirtualMachineInstance) {
	virtio := &vmi.DiskTarget{Bus: vmi.DiskBusVirtio}
	v.Spec.Domain.Devices.Disks = []vmi.Disk{{Name: "root", Disk: virtio}, {Name: "seed", Disk: virtio}, {Name: "empty", Disk: virtio}}
	v.Spec.Domain.Devices.Interfaces = []vmi.Interface{{Name: "default"}}
}

func ofRoot(h *Host) {
	d := h.Disks["root"]
	d.Format, d.Path = storage.QCOW2, "/new/root.qcow2"
	d.Source = storage.Overlay{Base: storage.Image{Path: "/new/guest.img", Format: storage.Raw}}
	h.Disks["root"] = d
	h.PrivateDir, h.ConsoleLog = "/new/private", "/new/private/log"
}

// TestADomainThatMovesKeepsWhatItsGuestSees moves a domain as libvirt described it.
func TestADomainThatMovesKeepsWhatItsGuestSees(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("testdata/moved/source.xml")
	require.NoError(t, err)
	notDirect := func(h *Host) {
		d := h.Disks["seed"]
		d.DirectIO = false
		h.Disks["seed"] = d
	}
	pinned := func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.CPU = &vmi.CPU{Cores: 1, DedicatedCPUPlacement: true}
	}
	for name, tt := range map[string]struct {
		vmi  []func(*vmi.VirtualMachineInstance)
		host []func(*Host)
	}{
		"another-pod": {[]func(*vmi.VirtualMachineInstance){moving, uefi(vmi.EFI{SecureBoot: new(false)})}, []func(*Host){ofRoot, notDirect}},
		"other-cpus": {[]func(*vmi.VirtualMachineInstance){moving, uefi(vmi.EFI{SecureBoot: new(false)}), pinned},
			[]func(*Host){ofRoot, func(h *Host) { h.CPUs = []HostCPU{{ID: 7}} }}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := instance(tt.vmi...)
			here, err := Build(v, host(v, tt.host...))
			require.NoError(t, err)
			moved, err := Moved(string(source), here)
			require.NoError(t, err)
			golden.Equal(t, "testdata/moved/"+name+".xml", []byte(moved))
			// What the guest sees is in no line that changes.
			for _, line := range []string{`<address `, `<alias `, `<mac `, `<feature `, `<model `, `<type `, `<mtu `, `<future `, `<qemu:arg `, `<tb-cache `} {
				require.Equal(t, strings.Count(string(source), line), strings.Count(moved, line), line)
			}
		})
	}
}

func TestADomainThatMovesWhereEverythingIsTheSameStaysTheSame(t *testing.T) {
	t.Parallel()
	v := instance(moving, disksOn(vmi.DiskBusSATA, vmi.DiskBusSCSI), optionalDevices, func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Devices.AutoattachVSOCK, v.Spec.Domain.Devices.TPM = new(true), &vmi.TPM{}
	})
	here, err := Build(v, host(v, ofRoot))
	require.NoError(t, err)
	source, err := here.Marshal()
	require.NoError(t, err)
	want, err := parseXML(source)
	require.NoError(t, err)
	moved, err := Moved(source, here)
	require.NoError(t, err)
	got, err := parseXML(moved)
	require.NoError(t, err)
	// libvirt has the socket of the screen twice, and a console that is the serial port.
	for _, e := range []*element{want, got} {
		e.first("devices", "graphics").set("socket", "")
		e.first("devices").take(&element{}, "console")
	}
	require.Equal(t, want.String(), got.String())
}

func TestADomainThatCannotMoveHereHasAnError(t *testing.T) {
	t.Parallel()
	v := instance(moving)
	here, err := Build(v, host(v))
	require.NoError(t, err)
	for source, want := range map[string]string{
		"":                   "it is not one whole element",
		"<domain><devices>":  "it is not one whole element",
		"<domain></devices>": "element devices ends and has not begun",
		"<domain/><domain/>": "it is not one whole element",
		"<domain a=b/>":      "read the XML of the domain that moves",
		"<domain><devices><disk><alias name='ua-other'/></disk></devices></domain>": "disk ua-other of the guest that moves is not in the domain of this pod",
	} {
		_, err := Moved(source, here)
		require.ErrorContains(t, err, want, source)
	}
}
