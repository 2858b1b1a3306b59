package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/launcher/process"
	"github.com/podvisor/podvisor/internal/storage/image"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/internal/testguest"
)

// asProgram is set in the environment of a test binary that is to be run-vmi.
const asProgram = "PODVISOR_TEST_RUN_VMI"

func TestMain(m *testing.M) {
	inspector.MemoryBytes = testenv.InspectionMemory(image.InspectionMemory)
	if os.Getenv(asProgram) != "" || len(os.Args) == 3 && os.Args[1] == inspection {
		os.Exit(program.Exit(run(os.Args[1:]), os.Stderr))
	}
	os.Exit(m.Run())
}

// user is a user with a line in /etc/passwd and no rights.
const user = "65534"

// folder is one that the user may write, with the program, a manifest, an image
// archive and a disk. It is the folder for temporary files too.
func folder(t *testing.T) string {
	t.Helper()
	testenv.Root(t)
	for _, name := range []string{"setpriv", "qemu-img", process.DaemonPath, process.QEMUPath(process.Arch())} {
		testenv.Program(t, name)
	}
	dir, err := os.MkdirTemp("", "run")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	exe, err := os.Executable()
	require.NoError(t, err)
	out, err := exec.Command("install", "-m", "0755", exe, dir+"/run-vmi").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.WriteFile(dir+"/vmi.yaml", []byte(hello), 0o644))
	require.NoError(t, os.WriteFile(dir+"/data.img", make([]byte, 16<<20), 0o644))
	require.NoError(t, os.WriteFile(dir+"/guest.tar", saved(t, map[string][]byte{"disk/guest.img": testguest.Disk()}), 0o644))
	out, err = exec.Command("chown", "-R", user, dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return dir
}

// hello has a container disk, a claim, a seed and an interface.
const hello = `
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {name: hello}
spec:
  terminationGracePeriodSeconds: 60
  domain:
    memory: {guest: 32Mi}
    devices:
      disks:
      - {name: root, bootOrder: 1, disk: {bus: virtio}}
      - {name: data, bootOrder: 2, disk: {bus: virtio}}
      - {name: seed, disk: {bus: virtio}}
      interfaces: [{name: default, masquerade: {}}]
  networks: [{name: default, pod: {}}]
  volumes:
  - {name: root, containerDisk: {image: "example/guest:1"}}
  - {name: data, persistentVolumeClaim: {claimName: data}}
  - {name: seed, cloudInitNoCloud: {userData: "#cloud-config"}}
`

// saved is an image archive as docker save makes it, with the files in one compressed
// layer.
func saved(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var layer bytes.Buffer
	z := gzip.NewWriter(&layer)
	_, err := z.Write(tarOf(t, files))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return tarOf(t, map[string][]byte{
		"manifest.json": []byte(`[{"Config":"c.json","RepoTags":["example/guest:1"],"Layers":["layer.tar"]}]`),
		"layer.tar":     layer.Bytes(),
	})
}

// running is the program that runs.
type running struct {
	*testing.T
	out    *testenv.Output
	notes  *testenv.Output
	in     io.Writer
	exited chan struct{} // closed at its end, with its exit code in code
	code   int
}

// start starts the program as the user, with in as its terminal or input.
func start(t *testing.T, dir string, in *os.File, typed io.Writer, args ...string) *running {
	t.Helper()
	r := &running{T: t, out: &testenv.Output{}, notes: &testenv.Output{}, in: typed, exited: make(chan struct{})}
	cmd := exec.Command("setpriv", append([]string{"--pdeathsig", "KILL", "--reuid", user, "--clear-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", dir + "/run-vmi"}, args...)...)
	cmd.Env = []string{asProgram + "=1", "PATH=/usr/bin:/bin", "TMPDIR=" + dir}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, r.out, r.notes
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	go func() {
		_ = cmd.Wait()
		r.code = cmd.ProcessState.ExitCode()
		close(r.exited)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-r.exited: // else it is killed with the tests, and its libvirtd goes on
		case <-time.After(time.Minute):
			t.Error("timeout: the program ends at SIGTERM")
		}
		if t.Failed() {
			t.Logf("console:\n%s\nlog:\n%s", r.out, r.notes)
		}
	})
	return r
}

// says waits until the guest has written words.
func (r *running) says(words string) {
	r.Helper()
	until(r.T, r.out, words)
}

func until(t *testing.T, out *testenv.Output, words string) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !strings.Contains(out.String(), words); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			require.FailNow(t, "timeout", "no %q in %s", words, out)
		}
	}
}

func (r *running) types(words string) {
	r.Helper()
	_, err := io.WriteString(r.in, words)
	require.NoError(r, err)
}

func (r *running) ends(code int) {
	r.Helper()
	select {
	case <-r.exited:
		require.Equal(r, code, r.code)
	case <-time.After(5 * time.Minute):
		require.FailNow(r, "timeout: the program ends")
	}
}

// terminal of a user: both its ends, and what is shown.
func pty(t *testing.T) (own, of *os.File) {
	t.Helper()
	own, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(int(own.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(own.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	of, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = own.Close(), of.Close() })
	return own, of
}

func TestAGuestRunsInATerminalUntilItIsLeft(t *testing.T) {
	dir := folder(t)
	keyboard, terminal := pty(t)
	before, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	require.NoError(t, err)
	r := start(t, dir, terminal, keyboard, "-image", "example/guest:1="+dir+"/guest.tar", "-volume", "data="+dir+"/data.img", "-network", "none", dir+"/vmi.yaml")
	go func() { _, _ = io.Copy(r.out, keyboard) }() // what the terminal shows; it ends with the terminal
	r.says(testguest.Up)
	raw, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	require.NoError(t, err)
	require.NotEqual(t, before, raw)
	r.types("w")
	r.says("disk written")
	r.types("\x1d")
	r.says("power button pressed")
	r.ends(0)
	after, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	require.NoError(t, err)
	require.Equal(t, before, after)
	left, err := filepath.Glob(dir + "/vm[0-9]*")
	require.NoError(t, err)
	require.Empty(t, left, "nothing is left of the guest")
}

func TestAGuestWithANetworkEndsTheProgramWhenItPowersOff(t *testing.T) {
	dir := folder(t)
	in, typed, err := os.Pipe()
	require.NoError(t, err)
	defer typed.Close()
	r := start(t, dir, in, typed, "-network", "user", "-image", "example/guest:1="+dir+"/guest.tar", "-volume", "data="+dir+"/data.img", dir+"/vmi.yaml")
	r.says(testguest.Up)
	r.types("o")
	r.says("powering off")
	r.ends(0)
}

func TestAGuestThatIgnoresThePowerButtonIsSwitchedOff(t *testing.T) {
	dir := folder(t)
	in, typed, err := os.Pipe()
	require.NoError(t, err)
	defer typed.Close()
	r := start(t, dir, in, typed, "-network", "none", "-volume", "root="+dir+"/guest.img", "-volume", "data="+dir+"/data.img", dir+"/vmi.yaml")
	r.ends(1)
	require.Contains(t, r.notes.String(), "volume root: ")
	require.NoError(t, os.WriteFile(dir+"/guest.img", testguest.Disk(), 0o644))
	r = start(t, dir, in, typed, "-v", "-network", "none", "-volume", "root="+dir+"/guest.img", "-volume", "data="+dir+"/data.img", dir+"/vmi.yaml")
	r.says(testguest.Up)
	r.types("d")
	r.says("power button ignored")
	r.types("\x1d")
	until(t, r.notes, "ask the guest to power off")
	r.types("\x1d")
	r.ends(1)
	require.Contains(t, r.notes.String(), "run-vmi: GracePeriodExceeded: ")
}

func TestEverythingThatIsMissingIsNamedAtOnce(t *testing.T) {
	v := filepath.Join(t.TempDir(), "vmi.yaml")
	require.NoError(t, os.WriteFile(v, []byte(hello), 0o600))
	err := run([]string{"-network", "none", "-volume", "nosuch=/dev/null", v})
	require.EqualError(t, err, "volume root: container disk example/guest:1: give its archive with -image example/guest:1=ARCHIVE, or its disk with -volume root=PATH\n"+
		"volume data: give its disk with -volume data=PATH\nvolume nosuch: the VMI has none of this name")
	require.Equal(t, 2, program.Exit(run(nil), os.Stderr))
	require.Equal(t, 2, program.Exit(run([]string{"-network", "tap", v}), os.Stderr))
	require.Equal(t, 2, program.Exit(run([]string{"-port", "80", v}), os.Stderr))
	require.ErrorContains(t, run([]string{"../service-hello.yaml"}), "it must have one VMI and has 0")
}
