package domain

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"libvirt.org/go/libvirtxml"
)

// pitfalls are what was found with libvirt 9.0 and QEMU 7.2, and what every domain has
// or lacks because of it. Others have tests of their own: a disk's format and the end
// of its backing files (TestAttackEveryDiskHasAFormatAndAnEndOfItsBackingFiles), the
// length of socket paths (TestSocketPathsFitIntoAnAddress), ports for devices that are
// attached later (TestAGuestKeepsPortsForDisksThatAreAttachedLater), what emulation
// cannot do (TestLibvirtTakesEachDeviceAtTheAddressThatItIsGiven in
// launcher/supervisor).
var pitfalls = map[string]func(*testing.T, *libvirtxml.Domain){
	"QEMU takes a gigabyte for translated code": func(t *testing.T, d *libvirtxml.Domain) {
		require.Equal(t, d.Type == "qemu", d.Features.TCG != nil)
		if d.Type == "qemu" {
			require.Equal(t, &libvirtxml.DomainFeatureTCGTBCache{Unit: "MiB", Size: 32}, d.Features.TCG.TBCache)
		}
	},
	"the models of KVM do not start under emulation": func(t *testing.T, d *libvirtxml.Domain) {
		if d.Type == "qemu" {
			require.NotContains(t, []string{"host-model", "host-passthrough"}, d.CPU.Mode)
		}
	},
	"the mode maximum is another processor with another QEMU": func(t *testing.T, d *libvirtxml.Domain) {
		require.True(t, d.CPU.Mode != "maximum" || d.OS.Type.Arch != archX86)
	},
	"libvirt refuses a feature that is named twice": func(t *testing.T, d *libvirtxml.Domain) {
		named := map[string]bool{}
		for _, f := range d.CPU.Features {
			require.False(t, named[f.Name], f.Name)
			named[f.Name] = true
		}
	},
	"a processor that is removed under emulation ends QEMU": func(t *testing.T, d *libvirtxml.Domain) {
		if d.Type == "qemu" && d.VCPUs != nil {
			require.False(t, slices.ContainsFunc(d.VCPUs.VCPU, func(c libvirtxml.DomainVCPUsVCPU) bool { return c.Enabled == "yes" && c.Hotpluggable == "yes" }))
		}
	},
	"a guest with less than 256 MiB and room for more panics": func(t *testing.T, d *libvirtxml.Domain) {
		require.True(t, d.MaximumMemory == nil || d.Memory.Value >= 256<<20)
	},
	"the boot ROM of a network card takes a second": func(t *testing.T, d *libvirtxml.Domain) {
		for _, i := range d.Devices.Interfaces {
			require.True(t, i.Boot != nil || i.ROM != nil && i.ROM.Enabled == "no")
		}
	},
	"a tap of one queue takes no card with several": func(t *testing.T, d *libvirtxml.Domain) {
		for _, i := range d.Devices.Interfaces {
			require.Equal(t, i.Driver != nil && i.Driver.Queues > 1, i.Alias.Name == InterfaceAlias("fast"), "only that one has a tap with several")
		}
	},
	"libvirt makes no tap without a privilege": func(t *testing.T, d *libvirtxml.Domain) {
		for _, i := range d.Devices.Interfaces {
			if i.Source.Ethernet != nil {
				require.Equal(t, "no", i.Target.Managed)
				require.NotEmpty(t, i.Target.Dev)
			}
		}
	},
	"the library cannot write to a console": func(t *testing.T, d *libvirtxml.Domain) {
		for _, s := range d.Devices.Serials {
			require.Equal(t, "bind", s.Source.UNIX.Mode, "a socket is dialled without libvirt")
		}
	},
	"a screen that listens is open to the network": func(t *testing.T, d *libvirtxml.Domain) {
		for _, g := range d.Devices.Graphics {
			require.Len(t, g.VNC.Listeners, 1)
			require.NotEmpty(t, g.VNC.Listeners[0].Socket.Socket)
		}
	},
	"a domain has the UUID of its SMBIOS tables": func(t *testing.T, d *libvirtxml.Domain) {
		require.Contains(t, d.SysInfo[0].SMBIOS.System.Entry, libvirtxml.DomainSysInfoEntry{Name: "uuid", Value: d.UUID})
	},
	"libvirt adds a balloon to a domain that says nothing of it": func(t *testing.T, d *libvirtxml.Domain) {
		require.NotNil(t, d.Devices.MemBalloon)
	},
	"libvirt gives addresses in the order of the devices": func(t *testing.T, d *libvirtxml.Domain) {
		if slices.ContainsFunc(d.Devices.Controllers, func(c libvirtxml.DomainController) bool { return c.Model == "pcie-root" }) {
			for _, device := range devicesOnPCI(d) {
				require.NotNil(t, *device.Address, device.Name)
			}
		}
	},
}

func TestNoDomainHasAKnownPitfall(t *testing.T) {
	t.Parallel()
	for name, tt := range cases {
		for _, change := range []func(*Host){func(*Host) {}, emulated} {
			h := host(tt.vmi, append(slices.Clone(tt.host), change)...)
			if !h.KVM && tt.vmi.Spec.Domain.LaunchSecurity != nil {
				continue // emulation has no such processor
			}
			d, err := Build(tt.vmi, h)
			require.NoError(t, err, name)
			for pitfall, check := range pitfalls {
				t.Run(pitfall+": "+name, func(t *testing.T) { check(t, d) })
			}
		}
	}
}
