package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
)

// TestAttackALauncherHoldsNothingOfItsNodeOrCluster looks for what a guest that broke
// out of QEMU, or a user with the right to exec into the pod, would find there.
func TestAttackALauncherHoldsNothingOfItsNodeOrCluster(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.create(guest("captured", cloudConfig("hostname: captured")))
	v := s.awaitPhase("captured", vmi.PhaseRunning)
	n := s.traces(v)
	for _, program := range []string{"/usr/bin/virt-launcher", "libvirtd", "qemu-system"} {
		pid, _, _ := strings.Cut(n.process(program), " ")
		status := n.status(pid)
		require.Equal(t, []string{"107", "107", "107", "107"}, strings.Fields(status["Uid"]), program)
		require.Equal(t, []string{"107", "107", "107", "107"}, strings.Fields(status["Gid"]), program)
		require.Equal(t, "1", status["NoNewPrivs"], program)
		require.Equal(t, "2", status["Seccomp"], program)
		const netBindService = 1 << 10
		for set, allowed := range map[string]uint64{"CapEff": 0, "CapPrm": 0, "CapAmb": 0, "CapInh": netBindService, "CapBnd": netBindService} {
			has, err := strconv.ParseUint(status[set], 16, 64)
			require.NoError(t, err)
			require.Zero(t, has&^allowed, "%s of %s is %x", set, program, has)
		}
	}

	pid, _, _ := strings.Cut(n.process("/usr/bin/virt-launcher"), " ")
	require.Empty(t, n.run("find /proc/"+pid+"/root/dev -type b"), "block devices")
	for line := range strings.Lines(n.run("cat /proc/" + pid + "/mountinfo")) {
		fields := strings.Fields(line)
		if from := fields[3]; strings.Contains(from, "/pods/") {
			require.Contains(t, from, "/pods/"+n.pod+"/", "a mount of another pod")
		}
		require.NotRegexp(t, `secrets/kubernetes\.io|/var/lib/kubelet|/cdi$|/containerd|/etc/kubernetes`, fields[4], "a mount of a token or of the node")
	}
	sockets := n.run("find /var/lib/kubelet/pods/" + n.pod + "/volumes -type s -printf '%U %p\\n'")
	require.Contains(t, sockets, vmi.LauncherSocket)
	for line := range strings.Lines(sockets) {
		require.True(t, strings.HasPrefix(line, "107 "), line)
	}
	require.Empty(t, n.run("find /var/lib/kubelet/pods -maxdepth 0 -perm /007"), "other users of the node enter the folder of the pods")
	for _, table := range []string{"tcp", "tcp6"} {
		for line := range strings.Lines(n.run(fmt.Sprintf("tail -n +2 /proc/%s/net/%s", pid, table))) {
			require.NotEqual(t, "0A", strings.Fields(line)[3], "the pod listens: %s", line)
		}
	}
	s.delete("captured")
}

// status is what the kernel says about a process.
func (n traces) status(pid string) map[string]string {
	n.t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(n.run("cat /proc/" + pid + "/status")) {
		key, value, _ := strings.Cut(line, ":")
		out[key] = strings.TrimSpace(value)
	}
	return out
}
