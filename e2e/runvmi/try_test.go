package runvmi

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/e2e/images"
	"github.com/podvisor/podvisor/internal/testenv"
)

// tried is what the README has its reader run first.
type tried struct {
	*testing.T
	cmd       *exec.Cmd
	terminal  *os.File
	out       *testenv.Output
	namespace string
	temporary string // its /tmp
	ended     chan error
}

// firstCommand is the first command of the README, without its comment.
func firstCommand(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	line := regexp.MustCompile(`(?m)^ {4}(\S.*)$`).FindSubmatch(page)
	require.NotNil(t, line)
	command, _, _ := strings.Cut(string(line[1]), "#")
	return strings.TrimSpace(command)
}

// pseudoTerminal opens a terminal and its other end.
func pseudoTerminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	return ours, theirs
}

// try runs the first command of the README in a terminal, by the words before it, in a
// namespace that is its host.
func try(t *testing.T, namespace string, before ...string) *tried {
	t.Helper()
	ours, theirs := pseudoTerminal(t)
	defer theirs.Close()
	dir, err := os.MkdirTemp("", "try-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o777|os.ModeSticky))
	r := &tried{T: t, terminal: ours, out: &testenv.Output{}, namespace: namespace, temporary: dir, ended: make(chan error, 1)}
	line := append([]string{"ip", "netns", "exec", namespace, "unshare", "--mount", "sh", "-c", `mount --bind "$0" /tmp; exec env --default-signal=INT "$@"`, dir}, before...)
	r.cmd = exec.Command(line[0], append(line[1:], "sh", "-c", firstCommand(t))...)
	r.cmd.Dir, r.cmd.Env = "../..", append(os.Environ(), "TMPDIR=/tmp")
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = theirs, theirs, theirs
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, r.cmd.Start())
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := ours.Read(b)
			if err != nil {
				return
			}
			_, _ = r.out.Write(b[:n])
		}
	}()
	go func() { r.ended <- r.cmd.Wait() }()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("terminal:\n%s", r.out)
			_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGTERM)
		}
		_ = ours.Close()
		_ = os.RemoveAll(dir)
	})
	return r
}

// says waits until words are on the terminal.
func (r *tried) says(words string) {
	r.Helper()
	require.Eventually(r.T, func() bool { return strings.Contains(r.out.String(), words) }, 3*time.Minute, 20*time.Millisecond, words)
}

// types types on the terminal.
func (r *tried) types(keys string) {
	r.Helper()
	_, err := r.terminal.WriteString(keys)
	require.NoError(r.T, err)
}

// leavesNothing waits for the end, after which there is no process and no file of it.
func (r *tried) leavesNothing() error {
	r.Helper()
	var status error
	select {
	case status = <-r.ended:
	case <-time.After(2 * time.Minute):
		require.FailNow(r.T, "timeout: the command ends")
	}
	// make and go end at a signal, and what they have started ends in order.
	var left []string
	if !assert.Eventually(r.T, func() bool { left = r.left(); return len(left) == 0 }, time.Minute, 100*time.Millisecond) {
		require.FailNow(r.T, "processes or files are left", "%s", strings.Join(left, "\n"))
	}
	return status
}

// left are the files of the command, and its processes: not that of the test, whose first
// thread may be in the namespace.
func (r *tried) left() []string {
	left, err := filepath.Glob(r.temporary + "/*")
	require.NoError(r.T, err)
	for _, pid := range strings.Fields(command(r.T, "ip", "netns", "pids", r.namespace)) {
		if pid == strconv.Itoa(os.Getpid()) {
			continue
		}
		line, _ := os.ReadFile("/proc/" + pid + "/cmdline")
		state, _ := os.ReadFile("/proc/" + pid + "/stat")
		left = append(left, fmt.Sprintf("process %s: %s: %s", pid, bytes.ReplaceAll(line, []byte{0}, []byte{' '}), state))
	}
	return left
}

// The README's first command boots a guest whose console is on the terminal and whose page
// answers, as root and as a user, with the /dev/kvm of the host and with none that works.
func TestTheFirstCommandOfTheREADMEBootsAGuest(t *testing.T) {
	namespace := tryHost(t)
	for name, before := range map[string][]string{
		"as root": nil,
		// The owner of all files of root, by another name and without its rights.
		"as a user": {"unshare", "--user", "--map-user=1", "--map-group=1"},
		"as a user without KVM": {"sh", "-c", `if [ -e /dev/kvm ]; then mount --bind /dev/null /dev/kvm; fi; exec "$@"`, "sh",
			"unshare", "--user", "--map-user=1", "--map-group=1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := try(t, namespace, before...)
			r.says("podvisor-guest: user-data finished")
			require.Contains(t, fetch(t, namespace, "/hello.txt"), "Hello from a virtual machine.")
			r.types("\r")
			r.says("root@hello")
			r.types("echo $((6 * 7))2\r")
			r.says("422")
			r.types("\x1d")
			r.says("podvisor-guest: powering off")
			r.says("== The guest is off")
			require.NoError(t, r.leavesNothing())
		})
	}
}

// It may be interrupted at any moment, leaves nothing, and works when it is run again.
func TestTheFirstCommandOfTheREADMEMayBeInterrupted(t *testing.T) {
	namespace := tryHost(t)
	for _, moment := range []string{"== Build", "== Install", "demo-guest", "== Boot", "TCP port 80", "podvisor-guest: init started", "user-data finished"} {
		r := try(t, namespace)
		r.says(moment)
		require.NoError(t, syscall.Kill(-r.cmd.Process.Pid, syscall.SIGINT))
		_ = r.leavesNothing() // the status is that of make
	}
	r := try(t, namespace)
	r.says("podvisor-guest: ready")
	r.types("\x1d")
	require.NoError(t, r.leavesNothing())
}

// tryHost is a host on which all is built.
func tryHost(t *testing.T) (namespace string) {
	t.Helper()
	testenv.Root(t)
	for _, name := range []string{"ip", "make", "unshare", "passt", "qemu-system-x86_64"} {
		testenv.Program(t, name)
	}
	namespace = host(t)
	_, err := images.Build(t.Context(), images.Config{Names: []string{"demo-guest"}, Out: t.Output()})
	require.NoError(t, err)
	return namespace
}
