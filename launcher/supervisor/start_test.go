package supervisor

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestAVMICompletedWithTheDefaultsOfAnyClusterIsServed(t *testing.T) {
	for name, p := range map[string]defaults.Profile{
		"a cluster that configures nothing": {},
		"another ratio":                     {HotplugRatio: 2},
		"maxima":                            {MaxSockets: 7, MaxGuest: new(resource.MustParse("6Gi"))},
		"no growth":                         {NoLiveUpdate: true},
	} {
		t.Run(name, func(t *testing.T) {
			v := defaults.Instance(vmitest.New(vmitest.WithMemory("2Gi"), vmitest.WithMasquerade("default")), p)
			_, err := build(v)
			require.NoError(t, err)

			v.Spec.Domain.Devices.Disks = []vmi.Disk{{Name: "a", LUN: &vmi.LunTarget{Reservation: true}}}
			_, err = build(v)
			require.ErrorIs(t, err, vmi.ErrInvalid, "what no default decides is refused")
		})
	}
}

func TestADiskKeepsThePlaceThatTheStatusRecords(t *testing.T) {
	v := vmitest.New()
	v.Status.VolumeStatus = []vmi.VolumeStatus{{Name: "data", Target: "vdc"}}
	s := &Supervisor{config: Config{Namespace: v.Namespace, Name: v.Name, UID: v.UID}}
	require.Equal(t, map[string]domain.Place{domain.DiskAlias("data"): {Target: "vdc"}}, s.host(protocol.Desired{Instance: v}).Places)
}

// build builds the domain of a VMI without disks.
func build(v *vmi.VirtualMachineInstance) (any, error) {
	s := &Supervisor{config: Config{Namespace: v.Namespace, Name: v.Name, UID: v.UID, AllowEmulation: true}}
	return domain.Build(v, s.host(protocol.Desired{Instance: v, Interfaces: []network.Attachment{{Name: "default"}}}))
}
