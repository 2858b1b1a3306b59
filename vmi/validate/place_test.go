package validate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/validate"
)

func TestAPCIAddressIsOneThatTheGuestHasAndThatIsFree(t *testing.T) {
	t.Parallel()
	const disk, card = "spec.domain.devices.disks[0].disk.pciAddress", "spec.domain.devices.interfaces[0].pciAddress"
	disks := func(n int) string { return strings.Repeat("{name: a, disk: {bus: virtio}},", n) }
	for name, tt := range map[string]struct {
		devices, annotations string
		at, why              string
	}{
		"a port":                          {devices: `disks: [{name: a, disk: {bus: virtio, pciAddress: "0000:02:00.0"}}]`},
		"the last port":                   {devices: `disks: [{name: a, disk: {bus: virtio, pciAddress: "0000:40:00.0"}}]`},
		"a bus that no guest has":         {devices: `disks: [{name: a, disk: {bus: virtio, pciAddress: "0000:81:01.0"}}]`, at: disk, why: "must be 00.0 of a bus from 01 to 40"},
		"another slot of a port":          {devices: `interfaces: [{name: n, pciAddress: "0000:02:01.0"}]`, at: card, why: "must be 00.0 of a bus"},
		"another domain":                  {devices: `interfaces: [{name: n, pciAddress: "0001:02:00.0"}]`, at: card, why: "must begin with 0000"},
		"the slot of file systems":        {devices: `interfaces: [{name: n, pciAddress: "0000:00:0a.0"}]`, at: card, why: "must not be on bus 00"},
		"a slot of cards":                 {devices: `interfaces: [{name: n, pciAddress: "0000:00:0b.0"}]`},
		"where another disk is":           {devices: `disks: [{name: a, disk: {bus: virtio, pciAddress: "0000:06:00.0"}}, {name: b, disk: {bus: virtio}}]`, at: disk, why: "is the address of spec.domain.devices.disks[1]"},
		"twice":                           {devices: `disks: [{name: a, disk: {bus: virtio, pciAddress: "0000:06:00.0"}}], interfaces: [{name: n, pciAddress: "0000:06:00.0"}]`, at: card, why: "is the address of " + disk},
		"an old card behind a port":       {devices: `interfaces: [{name: n, model: e1000, pciAddress: "0000:02:00.0"}]`, at: card, why: "cannot be behind a PCI Express port"},
		"a port of a guest without ports": {devices: `useVirtioTransitional: true, disks: [{name: a, disk: {bus: virtio, pciAddress: "0000:02:00.0"}}]`, at: disk, why: "must be on bus 00"},
		"the same by its annotation":      {devices: `disks: [{name: a, disk: {bus: virtio, pciAddress: "0000:02:00.0"}}]`, annotations: "{kubevirt.io/placePCIDevicesOnRootComplex: 'true'}", at: disk, why: "must be on bus 00"},
		"as many disks as ports":          {devices: `disks: [` + disks(32) + `]`},
		"one more":                        {devices: `disks: [` + disks(33) + `]`, at: "spec.domain.devices.disks[32]", why: "no room for so many disks"},
		"more than a guest without ports": {devices: `useVirtioTransitional: true, disks: [` + disks(9) + `]`, at: "spec.domain.devices.disks[8]", why: "no room for so many disks"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var v vmi.VirtualMachineInstance
			text := "metadata: {annotations: " + tt.annotations + "}\nspec: {domain: {memory: {guest: 64Mi}, devices: {" + tt.devices + "}}}"
			require.NoError(t, yaml.UnmarshalStrict([]byte(text), &v))
			var said []string
			for _, e := range validate.Instance(defaults.Instance(&v, defaults.Profile{}), validate.User{}, validate.Limits{}) {
				if strings.Contains(e.Detail, "PCI") || strings.Contains(e.Field, "pciAddress") {
					said = append(said, e.Field+": "+e.Detail)
				}
			}
			if tt.why == "" {
				require.Empty(t, said)
				return
			}
			require.Len(t, said, 1)
			require.True(t, strings.HasPrefix(said[0], tt.at+": "), said[0])
			require.Contains(t, said[0], tt.why)
		})
	}
}
