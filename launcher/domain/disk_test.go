package domain

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
)

func TestADiskOfAVolumeThatIsOnlyReadIsReadOnlyWhereItsBusHasSuchDisks(t *testing.T) {
	t.Parallel()
	for bus, ok := range map[vmi.DiskBus]bool{vmi.DiskBusVirtio: true, vmi.DiskBusSCSI: true, vmi.DiskBusSATA: false, "": false} {
		v := instance(disksOn(bus))
		d, err := Build(v, host(v, func(h *Host) {
			for name, d := range h.Disks {
				d.ReadOnly = true
				h.Disks[name] = d
			}
		}))
		if !ok {
			require.ErrorIs(t, err, vmi.ErrInvalid)
			require.ErrorContains(t, err, "is read-only, which disks on the bus sata cannot be")
			continue
		}
		require.NoError(t, err)
		require.NotNil(t, d.Devices.Disks[0].ReadOnly)
	}
}
