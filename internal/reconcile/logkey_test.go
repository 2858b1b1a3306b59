package reconcile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/vmi"
)

func TestAVMIHasOneKeyInAllLogs(t *testing.T) {
	t.Parallel()
	require.Equal(t, "vmi", reconcile.LogKey(&vmi.VirtualMachineInstance{}))
	require.Equal(t, "vmi", reconcile.LogKey((*vmi.VirtualMachineInstance)(nil)))
	require.Equal(t, "object", reconcile.LogKey(&vmi.VirtualMachine{}))
}
