package supervisor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// A loop device whose file was cut answers what it reads there with EIO.
func TestADeviceThatFailsPausesAGuestUntilItWorksAgain(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	store := filepath.Join(t.TempDir(), "store")
	require.NoError(t, os.WriteFile(store, bootable()["guest.img"], 0o600))
	device := run(t, "losetup", "--find", "--show", store)
	t.Cleanup(func() { run(t, "losetup", "--detach", device) })
	p := newPod(t, bootable(), "BLOCK="+device)
	v := withClaim("1Mi")
	v.Status.VolumeStatus[0].PersistentVolumeClaimInfo.VolumeMode = new(corev1.PersistentVolumeBlock)
	v.Spec.Domain.Devices.Disks = []vmi.Disk{v.Spec.Domain.Devices.Disks[3]}
	v.Spec.Volumes = []vmi.Volume{v.Spec.Volumes[3]}
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: v}))
	p.phase(protocol.Running)
	p.says("test guest is up", 1)

	require.NoError(t, os.Truncate(store, 0))
	p.write("b")
	require.Equal(t, protocol.Pause{Cause: protocol.PausedByIOError, Volume: "data", Message: "volume data: I/O error"}, p.paused())
	require.NoError(t, os.Truncate(store, size))
	p.says("disk read", 1)
	p.phase(protocol.Running)
}
