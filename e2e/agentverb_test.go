package e2e

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// askGuest requires the answers of the agent in the guest, which is a Debian, of what the
// VMI asks for.
func (s space) askGuest(v *vmi.VirtualMachineInstance) {
	s.t.Helper()
	ctx, vmis := s.t.Context(), world.vmis.VirtualMachineInstances(s.name)
	info, err := vmis.GuestInfo(ctx, v.Name)
	require.NoError(s.t, err)
	require.Equal(s.t, v.Spec.Hostname, info.Hostname)
	require.Contains(s.t, info.OS.Name, "Debian")
	require.NotEmpty(s.t, info.OS.KernelRelease)
	require.Contains(s.t, info.Timezone, ", ")
	require.NotEmpty(s.t, info.GuestAgentVersion)
	require.NotEmpty(s.t, info.FSInfo.Filesystems)
	require.Empty(s.t, info.FSFreezeStatus)
	_, err = vmis.Users(ctx, v.Name) // no user need be logged in
	require.NoError(s.t, err)
	files, err := vmis.FileSystems(ctx, v.Name)
	require.NoError(s.t, err)
	root := slices.IndexFunc(files.Items, func(f vmi.VirtualMachineInstanceFileSystem) bool { return f.MountPoint == "/" })
	require.GreaterOrEqual(s.t, root, 0, "%+v", files.Items)
	require.Positive(s.t, files.Items[root].TotalBytes)
	require.NotEmpty(s.t, files.Items[root].Disk)
	require.NotEmpty(s.t, files.Items[root].Disk[0].BusType)
}

// freezeGuest freezes the guest's file systems until they thaw by themselves, and then
// until a call.
func (s space) freezeGuest(v *vmi.VirtualMachineInstance) {
	s.t.Helper()
	const frozenFor = 10 * time.Second
	ctx, vmis := s.t.Context(), world.vmis.VirtualMachineInstances(s.name)
	changes, err := vmis.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + v.Name, ResourceVersion: s.get(v.Name).ResourceVersion})
	require.NoError(s.t, err)
	defer changes.Stop()
	// until waits for a status.
	until := func(want string) {
		var all []string // on the way to it
		limit := time.After(long)
		for {
			select {
			case e, open := <-changes.ResultChan():
				require.True(s.t, open, "the watch ended")
				if e.Type != watch.Modified {
					continue
				}
				now := e.Object.(*vmi.VirtualMachineInstance).Status.FSFreezeStatus
				if all = append(all, now); now == want {
					return
				}
			case <-limit:
				require.Fail(s.t, "the status does not follow", "it is not %q: %q", want, all)
			}
		}
	}
	require.NoError(s.t, vmis.Freeze(ctx, v.Name, client.FreezeOptions{Timeout: frozenFor}))
	until("frozen")
	until("") // it thaws by itself

	require.NoError(s.t, vmis.Freeze(ctx, v.Name, client.FreezeOptions{}))
	until("frozen")
	info, err := vmis.GuestInfo(ctx, v.Name)
	require.NoError(s.t, err)
	require.Equal(s.t, "frozen", info.FSFreezeStatus)
	require.NoError(s.t, vmis.Unfreeze(ctx, v.Name))
	until("")
}
