package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
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
	var info *vmi.VirtualMachineInstanceGuestAgentInfo
	eventually(s.t, soon, func() (err error) { // what the agent is slow to answer is left out
		if info, err = vmis.GuestInfo(ctx, v.Name); err == nil && len(info.FSInfo.Filesystems) == 0 {
			err = errors.New("the agent names no file systems")
		}
		return err
	})
	require.Equal(s.t, v.Spec.Hostname, info.Hostname)
	require.Contains(s.t, info.OS.Name, "Debian")
	require.NotEmpty(s.t, info.OS.KernelRelease)
	require.Contains(s.t, info.Timezone, ", ")
	require.NotEmpty(s.t, info.GuestAgentVersion)
	require.Empty(s.t, info.FSFreezeStatus)
	patiently(s.t, func() error {
		_, err := vmis.Users(ctx, v.Name) // no user need be logged in
		return err
	})
	var files *vmi.VirtualMachineInstanceFileSystemList
	patiently(s.t, func() (err error) {
		files, err = vmis.FileSystems(ctx, v.Name)
		return err
	})
	root := slices.IndexFunc(files.Items, func(f vmi.VirtualMachineInstanceFileSystem) bool { return f.MountPoint == "/" })
	require.GreaterOrEqual(s.t, root, 0, "%+v", files.Items)
	require.Positive(s.t, files.Items[root].TotalBytes)
	require.NotEmpty(s.t, files.Items[root].Disk)
	require.NotEmpty(s.t, files.Items[root].Disk[0].BusType)
}

// freezeGuest freezes the guest's file systems until they thaw by themselves, and then
// until a call. Meanwhile a program in the guest writes again and again.
func (s space) freezeGuest(v *vmi.VirtualMachineInstance, seen visitor, user string, key ssh.AuthMethod) {
	s.t.Helper()
	const frozenFor = 20 * time.Second
	ctx, vmis := s.t.Context(), world.vmis.VirtualMachineInstances(s.name)
	// It notes the times of its writes in memory.
	seen.awaitSSH(v, user, key, `sh -c 'while [ ! -e /dev/shm/stop ]; do echo x >>/var/tmp/probe && sync /var/tmp/probe && cut -d" " -f1 /proc/uptime >>/dev/shm/writes; sleep 0.5; done' >/dev/null 2>&1 </dev/null & while [ ! -s /dev/shm/writes ]; do sleep 0.2; done`)
	follow := func(from string) watch.Interface {
		w, err := vmis.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + v.Name, ResourceVersion: from})
		require.NoError(s.t, err)
		return w
	}
	// The version of the VMI may be older than what the API server keeps for watches.
	list, err := vmis.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + v.Name})
	require.NoError(s.t, err)
	version := list.ResourceVersion
	changes := follow(version)
	defer func() { changes.Stop() }()
	// until waits for a status, and returns those on the way to it.
	until := func(want string) (all []string) {
		limit := time.After(long)
		for {
			select {
			case e, open := <-changes.ResultChan():
				if !open { // an API server ends a watch when it likes
					changes = follow(version)
					continue
				}
				require.NotEqual(s.t, watch.Error, e.Type, "%+v", e.Object)
				if e.Type != watch.Modified {
					continue
				}
				changed := e.Object.(*vmi.VirtualMachineInstance)
				version = changed.ResourceVersion
				now := changed.Status.FSFreezeStatus
				if all = append(all, now); now == want {
					return all
				}
			case <-limit:
				require.Fail(s.t, "the status does not follow", "it is not %q: %q", want, all)
			}
		}
	}
	require.NoError(s.t, vmis.Freeze(ctx, v.Name, client.FreezeOptions{Timeout: frozenFor}))
	require.Equal(s.t, []string{"frozen"}, until("frozen"), "one write")
	require.Equal(s.t, []string{""}, slices.Compact(until("")), "it thaws by itself")

	require.NoError(s.t, vmis.Freeze(ctx, v.Name, client.FreezeOptions{}))
	until("frozen")
	info, err := vmis.GuestInfo(ctx, v.Name)
	require.NoError(s.t, err)
	require.Equal(s.t, "frozen", info.FSFreezeStatus)
	require.NoError(s.t, vmis.Unfreeze(ctx, v.Name))
	until("")

	var last, longest float64
	for _, at := range strings.Fields(seen.awaitSSH(v, user, key, "touch /dev/shm/stop; cat /dev/shm/writes")) {
		now, err := strconv.ParseFloat(at, 64)
		require.NoError(s.t, err)
		if last > 0 {
			longest = max(longest, now-last)
		}
		last = now
	}
	require.Greater(s.t, longest, 0.8*frozenFor.Seconds(), "the guest wrote while it was frozen")
}

// rebootGuest has the agent reboot the guest.
func (s space) rebootGuest(v *vmi.VirtualMachineInstance) {
	s.t.Helper()
	count := func(now *vmi.VirtualMachineInstance) int64 {
		if now.Status.GuestReboots == nil {
			return 0
		}
		return now.Status.GuestReboots.Count
	}
	before := count(s.get(v.Name))
	require.NoError(s.t, world.vmis.VirtualMachineInstances(s.name).SoftReboot(s.t.Context(), v.Name))
	eventually(s.t, slow, func() error {
		now := s.get(v.Name)
		require.Equal(s.t, v.UID, now.UID)
		if count(now) == before {
			return fmt.Errorf("%s did not reboot", v.Name)
		}
		return nil
	})
	var log string
	eventually(s.t, soon, func() (err error) {
		if log, err = s.readConsole(v); err == nil && !strings.Contains(log, "ask the guest's agent to reboot") {
			err = fmt.Errorf("the launcher of %s has not asked the agent", v.Name)
		}
		return err
	})
	require.NotContains(s.t, log, "press the power button for a reboot")
}
