package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// world is a VMI that runs, whose console sends back what it gets, and a terminal.
type world struct {
	server        *fake.Server
	vmis          client.VirtualMachineInstances
	user, program *os.File
	notes         bytes.Buffer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{server: fake.New(vmitest.New(vmitest.WithName("web"), vmitest.WithPhase(vmi.PhaseRunning)))}
	c, err := client.New(w.server.Config())
	require.NoError(t, err)
	w.vmis = c.VirtualMachineInstances("default")
	w.user, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(int(w.user.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(w.user.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	w.program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = w.user.Close(), w.program.Close() })
	return w
}

// mode is the mode of the terminal.
func (w *world) mode(t *testing.T) unix.Termios {
	t.Helper()
	m, err := unix.IoctlGetTermios(int(w.program.Fd()), unix.TCGETS)
	require.NoError(t, err)
	return *m
}

// start connects, and returns how the session ended.
func (w *world) start(ctx context.Context) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- connect(ctx, w.vmis, "web", w.program, w.program, &w.notes) }()
	return ended
}

// answers types the keys and waits until the guest has sent them back.
func (w *world) answers(t *testing.T, keys string) {
	t.Helper()
	_, err := io.WriteString(w.user, keys)
	require.NoError(t, err)
	got := make([]byte, len(keys))
	_, err = io.ReadFull(w.user, got)
	require.NoError(t, err)
	require.Equal(t, keys, string(got))
}

// raw waits until the terminal is raw.
func (w *world) raw(t *testing.T, before unix.Termios) {
	t.Helper()
	require.Eventually(t, func() bool { return w.mode(t) != before }, time.Minute, time.Millisecond)
}

func TestHowASessionEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(*world, context.CancelFunc)
		want string
	}{
		"by the key": {func(w *world, _ context.CancelFunc) { _, _ = w.user.WriteString("\x1d") }, ""},
		"by the key after others, which the guest gets": {func(w *world, _ context.CancelFunc) { _, _ = w.user.WriteString("bye\x1d") }, ""},
		"by a signal":                  {func(_ *world, stop context.CancelFunc) { stop() }, ""},
		"by the end of the API server": {func(w *world, _ context.CancelFunc) { w.server.Disconnect() }, "the console was ended"},
		"by another client":            {func(w *world, _ context.CancelFunc) { _, _ = w.vmis.Console(context.Background(), "web") }, "by another client"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			before := w.mode(t)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ended := w.start(ctx)
			w.raw(t, before)
			w.answers(t, "a\x03\x04\r\n\x1b[A")
			tt.end(w, stop)
			err := <-ended
			if tt.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tt.want)
			}
			require.Equal(t, before, w.mode(t), "the terminal has its mode again")
			require.Contains(t, w.notes.String(), "Ctrl-] to leave")
		})
	}
}

func TestAVMIWithoutAConsoleLeavesTheTerminalAsItIs(t *testing.T) {
	w := newWorld(t)
	before := w.mode(t)
	err := connect(t.Context(), w.vmis, "other", w.program, w.program, &w.notes)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	require.Equal(t, before, w.mode(t))
	require.Empty(t, w.notes.String())
}

func TestInputThatIsNoTerminalIsSent(t *testing.T) {
	w := newWorld(t)
	stream, err := w.vmis.Console(t.Context(), "web")
	require.NoError(t, err)
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- session(t.Context(), stream, strings.NewReader("uptime\n"), in) }()
	got := make([]byte, 7)
	_, err = io.ReadFull(out, got)
	require.NoError(t, err)
	require.Equal(t, "uptime\n", string(got), "the output stays open after the input has ended")
	require.NoError(t, stream.Close())
	require.Error(t, <-ended)
}

// Where the input has ended, as with </dev/null, the session ends by itself.
func TestASessionWithoutInputEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, over, written := make(chan error, 1), make(chan struct{}), make(chan struct{})
		result := make(chan error, 1)
		go func() { result <- await(t.Context(), ended, over, written) }()
		began := time.Now()
		time.Sleep(time.Hour) // the input is open
		close(over)
		time.Sleep(quiet - time.Second)
		written <- struct{}{} // the guest answers
		require.ErrorIs(t, <-result, errLeft)
		require.Equal(t, time.Hour+2*quiet-time.Second, time.Since(began))
	})
}
