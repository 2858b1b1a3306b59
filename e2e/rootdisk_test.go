package e2e

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
)

func TestAGuestBootsFromTheRootDiskOfThePage(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	page, err := os.ReadFile("../docs/root-disks.md")
	require.NoError(t, err)
	manifests := manifestIn.FindAllStringSubmatch(string(page), -1)
	require.Len(t, manifests, 2, "the claim with its Job, and the VM")
	s.apply(manifests[0][1])
	s.kubectl("wait", "job/web-root-from-image", "--for=condition=Complete", "--timeout=5m")
	s.apply(manifests[1][1])
	s.awaitPrinted("web", vmi.StatusRunning)
	s.awaitConsole(s.get("web"), ready)
	status := s.get("web").Status.VolumeStatus
	require.Len(t, status, 1)
	require.Equal(t, "web-root", status[0].PersistentVolumeClaimInfo.ClaimName)
	require.Greater(t, status[0].Size, int64(900<<20), "the disk has grown to its claim")
}
