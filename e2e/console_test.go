package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/vmi"
)

// console is a program at a terminal, as kubectl attach.
type console struct {
	t    *testing.T
	user *os.File // the end of the terminal that a user has
	cmd  *exec.Cmd
	done chan error

	mu    sync.Mutex
	shown string
}

// attach runs kubectl attach -it for the VMI's pod.
func (s space) attach(v *vmi.VirtualMachineInstance) *console {
	s.t.Helper()
	c := s.terminal(world.kubectl.Command(s.t.Context(), "-n", s.name, "attach", "-it", s.pod(v).Name, "-c", vmi.ComputeContainer))
	// What is typed before kubectl has made its terminal raw is echoed and edited.
	c.shows("try pressing enter")
	return c
}

// terminal runs the program at a terminal.
func (s space) terminal(cmd *exec.Cmd) *console {
	s.t.Helper()
	// Non-blocking, or a read that waits would keep it open when it is closed.
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	require.NoError(s.t, err)
	user := os.NewFile(uintptr(fd), "/dev/ptmx")
	require.NoError(s.t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(s.t, err)
	program, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(s.t, err)
	defer program.Close()
	require.NoError(s.t, unix.IoctlSetWinsize(int(program.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	c := &console{t: s.t, user: user, cmd: cmd, done: make(chan error, 1)}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = program, program, program
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(s.t, c.cmd.Start())
	s.t.Cleanup(func() {
		_ = c.cmd.Process.Kill() // it may have ended
		if s.t.Failed() {
			s.t.Logf("the terminal shows:\n%s", c.screen())
		}
	})
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := user.Read(b)
			c.mu.Lock()
			c.shown += string(b[:n])
			c.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	go func() { c.done <- c.cmd.Wait() }()
	return c
}

func (c *console) screen() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shown
}

func (c *console) types(keys string) {
	c.t.Helper()
	_, err := c.user.WriteString(keys)
	require.NoError(c.t, err)
}

// shows waits for the text.
func (c *console) shows(text string) {
	c.t.Helper()
	c.showsIn(soon, text)
}

func (c *console) showsIn(limit time.Duration, text string) {
	c.t.Helper()
	eventually(c.t, limit, func() error {
		if !strings.Contains(c.screen(), text) {
			return fmt.Errorf("the terminal does not show %q", text)
		}
		return nil
	})
}

// ends waits for the end of the program.
func (c *console) ends() {
	c.t.Helper()
	select {
	case <-c.done:
	case <-time.After(soon):
		require.FailNowf(c.t, "the program has not ended", "%s", c.cmd)
	}
}

func TestAGuestIsTypedIntoWithKubectl(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	v := s.create(guest("typist", cloudConfig("hostname: typist")))
	s.awaitSteady("typist")
	s.awaitConsole(v, "press Enter for a root shell")
	pod := s.pod(v)

	// Without -it there is a line instead of a kubectl that waits.
	began := time.Now()
	_, err := world.kubectl.Run(t.Context(), "-n", s.name, "attach", pod.Name, "-c", vmi.ComputeContainer)
	require.ErrorContains(t, err, "kubectl attach -it")
	require.Less(t, time.Since(began), soon)

	first := s.attach(v)
	first.types("\r")
	first.shows("root@typist")
	first.types("echo answer-$((6*7))\r")
	first.shows("answer-42")
	first.types("echo begun-$((1+1)); sleep 1000\r")
	first.shows("begun-2")
	next := time.Now()
	eventually(t, soon, func() error {
		if strings.Contains(first.screen(), "interrupted-2") {
			return nil
		}
		if !time.Now().Before(next) { // the shell may begin the command yet
			first.types("\x03")
			first.types("echo interrupted-$((1+1))\r")
			next = time.Now().Add(5 * time.Second)
		}
		return errors.New("the command is not interrupted")
	})
	first.types("\x10\x11")
	first.ends()

	second := s.attach(v)
	second.types("echo again-$((2+3))\r")
	second.shows("again-5")
	require.NoError(t, second.user.Close(), "the window is closed")
	second.ends()

	third := s.attach(v)
	third.types("echo third-$((3+4))\r")
	third.shows("third-7")
	third.types("reboot\r")
	var after *vmi.VirtualMachineInstance
	eventually(t, long, func() error {
		if after = s.get("typist"); after.Status.GuestReboots == nil {
			return fmt.Errorf("no reboot is counted")
		}
		return nil
	})
	require.Equal(t, int64(1), after.Status.GuestReboots.Count)
	require.Equal(t, vmi.PhaseRunning, after.Status.Phase)
	require.Nil(t, after.Status.Condition(vmi.ConditionGuestNotBooted))
	require.Nil(t, after.Status.GuestPanics)
	require.Equal(t, "Normal", s.awaitEvent(v, "GuestRebooted").Type)
	again := s.pod(v)
	require.Equal(t, pod.UID, again.UID)
	require.Zero(t, again.Status.ContainerStatuses[0].RestartCount)

	log := s.console(v)
	lines := 0
	for line := range strings.Lines(log) {
		if strings.HasPrefix(line, `{"time"`) {
			lines++
			require.True(t, json.Valid([]byte(line)), "%q", line)
		}
	}
	require.Greater(t, lines, 2, "the launcher logs whole lines beside the guest")
	require.Contains(t, log, "answer-42", "the log has what the guest wrote")
}

func TestAGuestWhoseKernelPanicsHasFailed(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	v := guest("panicky", cloudConfig("runcmd: ['echo 1 > /proc/sys/kernel/sysrq', 'echo c > /proc/sysrq-trigger']"))
	v.Spec.Domain.Devices.PanicDevices = []vmi.PanicDevice{{}}
	s.create(v)
	eventually(t, long, func() error {
		if got := s.get("panicky"); got.Status.Phase != vmi.PhaseFailed {
			return fmt.Errorf("the VMI is %s", got.Status.Phase)
		}
		return nil
	})
	v = s.get("panicky")
	require.Equal(t, "Crashed", v.Status.Reason)
	require.NotNil(t, v.Status.GuestPanics)
	require.Equal(t, int64(1), v.Status.GuestPanics.Count)
	require.Contains(t, v.Status.Condition(vmi.ConditionReady).Message, "the kernel of the guest panicked")
	require.Equal(t, "Warning", s.awaitEvent(v, "GuestPanicked").Type)
}

func TestADiskThatNothingBootsIsHintedAt(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.endTurn() // nothing boots
	v := guest("empty", cloudConfig())
	v.Spec.Volumes[0].VolumeSource = vmi.VolumeSource{EmptyDisk: &vmi.EmptyDisk{Capacity: resource.MustParse("64Mi")}}
	v = s.create(v)
	s.awaitPhase("empty", vmi.PhaseRunning)
	s.awaitEvent(v, "Started")
	var hint *vmi.Condition
	eventually(t, long, func() error {
		if hint = s.get("empty").Status.Condition(vmi.ConditionGuestNotBooted); hint == nil {
			return fmt.Errorf("there is no hint")
		}
		return nil
	})
	require.Equal(t, "NothingReadFromDisks", hint.Reason)
	s.awaitEvent(v, "GuestNotBooted")
	require.Equal(t, vmi.PhaseRunning, s.get("empty").Status.Phase)
}
