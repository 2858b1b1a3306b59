package domain

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// QEMU's driver for files refuses devices.
func TestTheBaseOfAnOverlayIsAFileOrADevice(t *testing.T) {
	t.Parallel()
	for _, device := range []bool{false, true} {
		v := instance(disksOn(vmi.DiskBusVirtio))
		d, err := Build(v, host(v, func(h *Host) {
			for name, d := range h.Disks {
				d.Format = storage.QCOW2
				d.Source = storage.Overlay{Base: storage.Image{Path: "/dev/base", Format: storage.Raw, Device: device}}
				h.Disks[name] = d
			}
		}))
		require.NoError(t, err)
		base := d.Devices.Disks[0].BackingStore
		require.Equal(t, device, base.Source.Block != nil)
		require.Equal(t, !device, base.Source.File != nil)
		require.Equal(t, "raw", base.Format.Type)
		require.NotNil(t, base.BackingStore, "the chain ends there")
	}
}
