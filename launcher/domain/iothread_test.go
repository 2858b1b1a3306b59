package domain

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
)

func TestDisksHaveTheThreadsOfTheirPolicy(t *testing.T) {
	t.Parallel()
	four := []vmi.Disk{virtio("a"), virtio("b"), virtio("c"), virtio("d")}
	mixed := []vmi.Disk{virtio("a", alone), virtio("b"), on(vmi.DiskBusSATA, "sata"), virtio("c", alone), virtio("d")}
	pool := func(n uint32) *vmi.IOThreads { return &vmi.IOThreads{SupplementalPoolThreadCount: &n} }
	for name, tt := range map[string]struct {
		spec vmi.DomainSpec
		want map[string]uint
	}{
		"no policy": {vmi.DomainSpec{Devices: vmi.Devices{Disks: four}}, map[string]uint{}},
		"no policy and dedicated threads": {vmi.DomainSpec{Devices: vmi.Devices{Disks: mixed}},
			map[string]uint{"ua-a": 1, "ua-c": 2}},
		"shared": {vmi.DomainSpec{IOThreadsPolicy: vmi.IOThreadsShared, Devices: vmi.Devices{Disks: four}},
			map[string]uint{"ua-a": 1, "ua-b": 1, "ua-c": 1, "ua-d": 1}},
		"shared and dedicated": {vmi.DomainSpec{IOThreadsPolicy: vmi.IOThreadsShared, Devices: vmi.Devices{Disks: mixed}},
			map[string]uint{"ua-a": 2, "ua-b": 1, "ua-c": 3, "ua-d": 1}},
		"shared, and no disk shares": {vmi.DomainSpec{IOThreadsPolicy: vmi.IOThreadsShared, Devices: vmi.Devices{Disks: []vmi.Disk{virtio("a", alone)}}},
			map[string]uint{"ua-a": 1}},
		"auto with one processor": {vmi.DomainSpec{IOThreadsPolicy: vmi.IOThreadsAuto, Devices: vmi.Devices{Disks: four}},
			map[string]uint{"ua-a": 1, "ua-b": 2, "ua-c": 1, "ua-d": 2}},
		"auto with more processors than disks": {vmi.DomainSpec{CPU: &vmi.CPU{Cores: 4}, IOThreadsPolicy: vmi.IOThreadsAuto, Devices: vmi.Devices{Disks: four}},
			map[string]uint{"ua-a": 1, "ua-b": 2, "ua-c": 3, "ua-d": 4}},
		"auto, and the dedicated ones are as many as the others may be": {vmi.DomainSpec{IOThreadsPolicy: vmi.IOThreadsAuto, Devices: vmi.Devices{Disks: mixed}},
			map[string]uint{"ua-a": 2, "ua-b": 1, "ua-c": 3, "ua-d": 1}},
		"a pool": {vmi.DomainSpec{IOThreadsPolicy: vmi.IOThreadsSupplementalPool, IOThreads: pool(3), Devices: vmi.Devices{Disks: four}},
			map[string]uint{"ua-a": 1, "ua-b": 2, "ua-c": 3, "ua-d": 1}},
		"a pool that is larger than any node": {vmi.DomainSpec{IOThreadsPolicy: vmi.IOThreadsSupplementalPool, IOThreads: pool(1 << 31), Devices: vmi.Devices{Disks: four}},
			map[string]uint{"ua-a": 1, "ua-b": 2, "ua-c": 3, "ua-d": 4}},
		"a pool without a size": {vmi.DomainSpec{IOThreadsPolicy: vmi.IOThreadsSupplementalPool, Devices: vmi.Devices{Disks: four}}, map[string]uint{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, diskThreads(&tt.spec))
		})
	}
}
