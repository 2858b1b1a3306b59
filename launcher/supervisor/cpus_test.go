package supervisor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/domain"
)

func TestTheCPUsOfThePodAreThoseThatItsProcessesMayUse(t *testing.T) {
	t.Parallel()
	all, err := hostCPUs("/sys")
	require.NoError(t, err)
	require.NotEmpty(t, all)

	sysfs := t.TempDir()
	for path, text := range map[string]string{"topology/core_id": "5\n", "topology/physical_package_id": "1\n", "node3/x": ""} {
		path = filepath.Join(sysfs, "devices/system/cpu/cpu9", path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	require.Equal(t, domain.HostCPU{ID: 9, Core: 5, Package: 1, Node: 3}, hostCPU(sysfs, 9))
	require.Equal(t, domain.HostCPU{ID: 8, Core: 8}, hostCPU(sysfs, 8))
}

func TestTheDevicesOfThePodAreInItsEnvironment(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]string{"PCI_RESOURCE_A": "0000:01:00.0", "MDEV_PCI_RESOURCE_B": "x"},
		hostDevices([]string{"PATH=/bin", "PCI_RESOURCE_A=0000:01:00.0", "MDEV_PCI_RESOURCE_B=x", "OTHER_PCI_RESOURCE_A=y"}))
}
