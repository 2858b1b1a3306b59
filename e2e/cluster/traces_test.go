package cluster_test

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/e2e/cluster"
	"github.com/podvisor/podvisor/e2e/cluster/plan"
)

// traces are what a cluster could change on the host that runs it.
type traces struct {
	links   []string
	mounts  []string
	sysctls map[string]string
	folders []string
	loops   []string
}

// look sees the host as it is. Other clusters may come and go at the same time, and
// images be built: their loop devices and mounts are not those of the named cluster.
func look(t *testing.T, name string) traces {
	t.Helper()
	l := traces{sysctls: map[string]string{}}
	// Other tests may mount and link at the same time; look for the names that clusters use.
	links, err := net.Interfaces()
	require.NoError(t, err)
	for _, link := range links {
		if slices.Contains([]string{"br0", "br1", "n1", "n2", "n1-eth1", "n2-eth1", "cni0"}, link.Name) {
			l.links = append(l.links, link.Name)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, "podvisor") && !strings.Contains(line, "/podvisor/images/") || strings.Contains(line, "kubelet") || strings.Contains(line, "containerd") {
			l.mounts = append(l.mounts, line)
		}
	}
	for _, name := range []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
		"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes", "net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding", "net/ipv6/conf/default/accept_dad"} {
		value, err := os.ReadFile(filepath.Join("/proc/sys", name))
		require.NoError(t, err)
		l.sysctls[name] = string(value)
	}
	for _, dir := range []string{"/var/lib/kubelet", "/var/lib/containerd", "/etc/cni", "/opt/cni", "/opt/containerd", "/run/cdi", "/run/containerd"} {
		if _, err := os.Stat(dir); err == nil {
			l.folders = append(l.folders, dir)
		}
	}
	loops, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	require.NoError(t, err)
	for _, file := range loops {
		if shown, err := os.ReadFile(file); err == nil && strings.Contains(string(shown), stateDir(t, name)) {
			l.loops = append(l.loops, string(shown))
		}
	}
	return l
}

// requireGone checks that nothing is left of a cluster.
func requireGone(t *testing.T, c cluster.Config, before traces) {
	t.Helper()
	require.Equal(t, before, look(t, c.Name))
	state := stateDir(t, c.Name)
	require.NoDirExists(t, state)
	require.NoFileExists(t, state+".lock")
	require.Empty(t, processes(t, state, "/"+plan.Cgroup(c.Name)+"/"))
	groups, err := filepath.Glob("/sys/fs/cgroup/*/" + plan.Cgroup(c.Name))
	require.NoError(t, err)
	require.Empty(t, groups)
	require.NoDirExists(t, filepath.Join("/sys/fs/cgroup", plan.Cgroup(c.Name)))
}

// processes are the command lines that name the folder or belong to the group.
func processes(t *testing.T, state, group string) []string {
	t.Helper()
	var found []string
	all, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	for _, p := range all {
		args, err := os.ReadFile(p + "/cmdline")
		if err != nil {
			continue // it has ended
		}
		groups, _ := os.ReadFile(p + "/cgroup")
		words := strings.Split(string(args), "\x00")
		if strings.Contains(string(groups), group) || slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, state+"/") || w == state }) {
			found = append(found, strings.Join(words, " "))
		}
	}
	return found
}
