package process

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/testenv"
)

// A daemon leaves the commands that it waits for, and QEMUs that it asks what they can do,
// which are in sessions of their own, as that of a domain is.
func TestADaemonThatHasEndedLeavesTheQEMUOfADomainAlone(t *testing.T) {
	testenv.Program(t, "setsid")
	r, err := NewReaper()
	require.NoError(t, err)
	go r.Run(t.Context())
	d := NewDaemon(Config{Dir: t.TempDir(), Reaper: r})

	// Each says its process ID and goes on until its input is closed.
	const script = `
waits='echo $$; read x <&3'
sh -c "$waits" &
setsid sh -c "$waits" "$0/conf/libvirt/qemu/lib/qmp-a1B2c3/qmp.pid" &
setsid sh -c "$waits" "$0/run/libvirt/qemu/run/ns_vm.pid" &
wait`
	input, hold, err := os.Pipe()
	require.NoError(t, err)
	output, said, err := os.Pipe()
	require.NoError(t, err)
	sh, err := exec.LookPath("sh")
	require.NoError(t, err)
	daemon, err := os.StartProcess(sh, []string{"sh", "-c", script, d.config.Dir}, &os.ProcAttr{
		Files: []*os.File{nil, said, nil, input},
		Sys:   &unix.SysProcAttr{Setsid: true},
	})
	require.NoError(t, err)
	pid := daemon.Pid
	require.NoError(t, daemon.Release())
	require.NoError(t, input.Close())
	require.NoError(t, said.Close())
	lines := bufio.NewScanner(output)
	pids := map[string]int{}
	for range 3 {
		require.True(t, lines.Scan())
		var child int
		_, err := fmt.Sscan(lines.Text(), &child)
		require.NoError(t, err)
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child))
		require.NoError(t, err)
		s, ok := statusOf(child)
		require.True(t, ok)
		switch {
		case s.session == pid:
			pids["command"] = child
		case strings.Contains(string(line), "/qmp-"):
			pids["probe"] = child
		default:
			pids["domain"] = child
		}
	}
	require.Len(t, pids, 3)
	require.Equal(t, []int{pid}, d.left(pid), "what a daemon that is alive has started is its own")

	exited := r.Exited(pid)
	require.NoError(t, unix.Kill(pid, unix.SIGKILL))
	<-exited
	d.clear(pid)
	for _, name := range []string{"command", "probe"} {
		s, ok := statusOf(pids[name])
		require.True(t, !ok || s.state == 'Z', name)
	}
	s, ok := statusOf(pids["domain"])
	require.True(t, ok)
	require.NotEqual(t, byte('Z'), s.state)
	ended := r.Exited(pids["domain"])
	require.NoError(t, hold.Close())
	<-ended
}
