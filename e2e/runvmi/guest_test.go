package runvmi

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/e2e/images"
	"github.com/podvisor/podvisor/internal/testenv"
)

// user is a user with a line in /etc/passwd and no rights.
const user = "65534"

// guest is run-vmi with a guest of the image demo-guest.
type guest struct {
	*testing.T
	// manifest is the VMI, which names the image example/guest:1. Required.
	manifest string
	// architecture is that of the guest, as in GOARCH. Empty: amd64.
	architecture string
	// host are the words before the program that give it the namespaces of its host. Required.
	host []string
	// args are further arguments of run-vmi, and env further variables.
	args, env []string
	// toBoot and toEnd are how long the guest may take. Required.
	toBoot, toEnd time.Duration

	cmd            *exec.Cmd
	console, notes testenv.Output
	ended          chan error
}

// start starts run-vmi as a user without rights.
func (g *guest) start() {
	g.Helper()
	built, err := images.Build(g.Context(), images.Config{Names: []string{"demo-guest"}, Architecture: g.architecture, Out: g.Output()})
	require.NoError(g, err)
	dir, err := os.MkdirTemp("", "run") // the path is short
	require.NoError(g, err)
	g.Cleanup(func() { _ = os.RemoveAll(dir) })
	command(g.T, "go", "-C", "../..", "build", "-o", dir+"/run-vmi", "./examples/run-vmi")
	command(g.T, "install", "-m", "0644", built[0].Tar, dir+"/guest.tar")
	require.NoError(g, os.WriteFile(dir+"/vmi.yaml", []byte(g.manifest), 0o644))
	command(g.T, "chown", "-R", user, dir)

	line := append(g.host, "setpriv", "--reuid", user, "--clear-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", dir+"/run-vmi")
	line = append(append(line, g.args...), "-image", "example/guest:1="+dir+"/guest.tar", dir+"/vmi.yaml")
	g.cmd = exec.Command(line[0], line[1:]...)
	g.cmd.Env = append([]string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "TMPDIR=" + os.TempDir()}, g.env...)
	g.cmd.Stdout, g.cmd.Stderr = &g.console, &g.notes
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(g, g.cmd.Start())
	g.ended = make(chan error, 1)
	go func() { g.ended <- g.cmd.Wait() }()
	g.Cleanup(func() {
		_ = g.cmd.Process.Signal(syscall.SIGTERM)
		if g.Failed() {
			g.Logf("console:\n%s\nlog:\n%s", &g.console, &g.notes)
		}
	})
}

// says waits until words are on the console of the guest.
func (g *guest) says(words string) {
	g.Helper()
	require.Eventually(g, func() bool { return strings.Contains(g.console.String(), words) || len(g.ended) > 0 }, g.toBoot, 50*time.Millisecond)
	require.Contains(g, g.console.String(), words)
}

// powersOff ends run-vmi, and with it the guest.
func (g *guest) powersOff() {
	g.Helper()
	require.NoError(g, g.cmd.Process.Signal(syscall.SIGTERM))
	g.says("podvisor-guest: powering off")
	select {
	case err := <-g.ended:
		require.NoError(g, err)
	case <-time.After(g.toEnd):
		require.FailNow(g, "timeout: run-vmi ends with the guest")
	}
}
