package supervisor

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/launcher/process"
	"github.com/podvisor/podvisor/internal/storage/image"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/internal/testguest"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// launch is set in the environment of a test binary that is to be a launcher.
const launch = "PODVISOR_TEST_LAUNCHER"

// inspection is the first argument of a test binary that is to inspect an image.
const inspection = "inspect"

func TestMain(m *testing.M) {
	if dir := os.Getenv(inspect); dir != "" {
		printProcessors(dir)
		return
	}
	if len(os.Args) == 3 && os.Args[1] == inspection {
		if err := Inspection(os.Args[2], os.Stdout); err != nil {
			panic(err)
		}
		return
	}
	if os.Getenv(launch) == "" {
		code := m.Run()
		_ = os.RemoveAll(shared())
		os.Exit(code)
	}
	grace, err := time.ParseDuration(os.Getenv("GRACE"))
	if err != nil {
		panic(err)
	}
	s, err := New(Config{
		Namespace: "default", Name: "vm", UID: "6f1c2a3e-9a43-4f0e-8d2b-0c54a7b1e9d2",
		GracePeriod: grace, AllowEmulation: os.Getenv("EMULATION") != "",
		Inspector: Inspector{Command: []string{"/proc/self/exe", inspection}, MemoryBytes: testenv.InspectionMemory(image.InspectionMemory)}, Console: os.Stdout, Input: os.Stdin, TerminationLog: "/run/termination-log",
		RequireState: os.Getenv("REQUIRE") != "",
		Logger:       slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		panic(err)
	}
	for name, period := range map[string]*time.Duration{"ANSWERS": &s.session.answers, "FINISH": &s.finishWait} {
		if *period, err = time.ParseDuration(cmp.Or(os.Getenv(name), period.String())); err != nil {
			panic(err)
		}
	}
	s.endTimeout = time.Minute
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	end, err := s.Run(ctx)
	if err != nil || !end.Reason.Succeeded() {
		os.Exit(1)
	}
	os.Exit(0)
}

// sandbox turns a fresh set of namespaces into something like a launcher's pod
// and becomes its first process.
const sandbox = `
set -e
` + testenv.LauncherMounts + `
cd "$IMAGE"
mount -t tmpfs -o mode=0755 tmpfs /run
mkdir -p /run/kubevirt/sockets /run/kubevirt-private /run/kubevirt-ephemeral-disks /run/kubevirt/container-disks/root /run/drivers
chown 107:107 /run/kubevirt/sockets /run/kubevirt-private /run/kubevirt-ephemeral-disks
touch /run/termination-log && chmod 666 /run/termination-log
if [ -n "$SPACE" ]; then mount -t tmpfs -o mode=0777,size=$SPACE tmpfs /run/kubevirt-ephemeral-disks; fi
if [ -n "$CLAIM" ]; then mkdir -p /run/kubevirt-private/vmi-disks/data; mount -t tmpfs -o mode=0777,size=$CLAIM tmpfs /run/kubevirt-private/vmi-disks/data; fi
if [ -n "$DAEMON" ]; then mount --bind "$DAEMON" /usr/sbin/libvirtd; fi
mount --bind "$DISK" /run/kubevirt/container-disks/root
if [ -n "$SECOND" ]; then mkdir /run/kubevirt/container-disks/second; mount --bind "$SECOND" /run/kubevirt/container-disks/second; fi
if [ -n "$FILES" ]; then cp -r "$FILES"/. /run/ && chown -R 107:107 /run/kubevirt/secrets /run/kubevirt-private; fi
if [ -n "$KERNEL" ]; then mkdir -p /run/kubevirt/kernel-boot/kernel; mount --bind "$KERNEL" /run/kubevirt/kernel-boot/kernel; fi
if [ -n "$STATE" ]; then
	mkdir /run/kubevirt-private/nvram /run/kubevirt-private/swtpm
	mount --bind "$STATE/nvram" /run/kubevirt-private/nvram
	mount --bind "$STATE/swtpm" /run/kubevirt-private/swtpm
fi
if [ -n "$BLOCK" ]; then
	mkdir /run/dev && mount -t tmpfs -o mode=0755 tmpfs /run/dev
	cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /run/dev/
	cp -a "$BLOCK" /run/dev/data && chown 107:107 /run/dev/data
	mount --move /run/dev /dev
fi
if [ -n "$TAP" ]; then
	ip tuntap add "$TAP" mode tap user 107
	mknod -m 0666 /run/tun c 10 200 && mount --bind /run/tun /dev/net/tun
fi
mount --bind passwd /etc/passwd
mount --bind group /etc/group
mount -t overlay -o lowerdir=share:/usr/share overlay /usr/share
ln -s /usr/lib/x86_64-linux-gnu/libvirt/connection-driver/libvirt_driver_qemu.so /run/drivers/
export LIBVIRT_DRIVER_DIR=/run/drivers
launcher="taskset --cpu-list ${CPUS:-0-1023} setpriv --pdeathsig KILL --reuid 107 --regid 107 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all ./launcher"
while [ -n "$RESTART" ]; do $launcher || sleep 0.1; done
exec $launcher
`

// shared is the folder with what the sandboxes of this test run share. It is not
// in the folders of a test, which user 107 cannot enter.
func shared() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("podvisor-launcher-%d", os.Getpid()))
}

// prepared makes the image once: the launcher, the users, and libvirt's record
// of what QEMU can do.
var prepared = sync.OnceValue(func() error {
	if err := os.MkdirAll(filepath.Join(shared(), "share", "podvisor", "qemu-capabilities"), 0o755); err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	if out, err := exec.Command("install", "-m", "0755", exe, filepath.Join(shared(), "launcher")).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	for name, line := range map[string]string{"passwd": "qemu:x:107:107::/:/bin/false\n", "group": "qemu:x:107:\n"} {
		b, err := os.ReadFile("/etc/" + name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(shared(), name), append(b, line...), 0o644); err != nil {
			return err
		}
	}
	return nil
})

// pod is a launcher in a sandbox.
type pod struct {
	*testing.T
	launcher int // its process
	client   repeating
	keyboard io.WriteCloser // what is written here is typed
	console  *testenv.Output
	log      *testenv.Output
	exited   chan int
}

// newPod starts a launcher whose container disk holds disk.
func newPod(t *testing.T, disk map[string][]byte, env ...string) *pod {
	t.Helper()
	testenv.Root(t)
	for _, name := range []string{"unshare", "setpriv", "qemu-img", process.DaemonPath, process.QEMUPath(process.Arch())} {
		testenv.Program(t, name)
	}
	require.NoError(t, prepared())
	dir, err := os.MkdirTemp(shared(), "disk")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "disk"), 0o755))
	for name, content := range disk {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "disk", name), content, 0o644))
	}
	p := &pod{T: t, console: &testenv.Output{}, log: &testenv.Output{}, exited: make(chan int, 1)}
	cmd := exec.Command("unshare", "--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child", "--mount-proc", "sh", "-c", sandbox)
	cmd.Env = append(os.Environ(), append([]string{launch + "=1", "IMAGE=" + shared(), "DISK=" + dir, "GRACE=5m", "FINISH=1m", "EMULATION=yes", "LAUNCHER_ROOT=" + testenv.LauncherRoot(t)}, env...)...)
	cmd.Stdout, cmd.Stderr = p.console, p.log
	p.keyboard, err = cmd.StdinPipe()
	require.NoError(t, err)
	// The sandbox shall not outlive the tests, however they end.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // its child dies with it, and with that everything in the sandbox
		<-done
		if t.Failed() {
			t.Logf("console:\n%s\nlog:\n%s", p.console, p.log)
		}
	})
	go func() {
		_ = cmd.Wait()
		p.exited <- cmd.ProcessState.ExitCode()
		close(done)
	}()
	p.client = repeating{control.NewClient(func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", p.path("kubevirt/sockets/launcher-sock"))
	})}
	p.until("the launcher answers", func() bool {
		if p.launcher = child(cmd.Process.Pid); p.launcher == 0 {
			return false
		}
		_, err := p.client.State(t.Context())
		return err == nil
	})
	return p
}

// longest is how long a test waits for what is to happen.
const longest = 5 * time.Minute

// repeating is a client that asks again when something did not answer in time, which it may not
// on a host that is slow.
type repeating struct{ *control.Client }

// repeat repeats do, which may be done twice, until it is in time.
func repeat(ctx context.Context, do func() error) error {
	for end := time.Now().Add(longest); ; {
		if err := do(); !late(err) || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
	}
}

// late says that the launcher did not answer in time, or libvirt, which the launcher asked.
func late(err error) bool {
	var timeout net.Error
	if errors.As(err, &timeout) {
		return timeout.Timeout()
	}
	var refusal *control.Error
	return errors.As(err, &refusal) && strings.Contains(refusal.Message, context.DeadlineExceeded.Error())
}

func (c repeating) State(ctx context.Context) (s protocol.State, err error) {
	err = repeat(ctx, func() error { s, err = c.Client.State(ctx); return err })
	return s, err
}

func (c repeating) Stats(ctx context.Context) (s protocol.Stats, err error) {
	err = repeat(ctx, func() error { s, err = c.Client.Stats(ctx); return err })
	return s, err
}

func (c repeating) Put(ctx context.Context, d protocol.Desired) error {
	return repeat(ctx, func() error { return c.Client.Put(ctx, d) })
}

func (c repeating) Call(ctx context.Context, call protocol.Call, options, answer any) error {
	do := func() error { return c.Client.Call(ctx, call, options, answer) }
	if call == protocol.CallPause || call == protocol.CallUnpause {
		return repeat(ctx, do)
	}
	return do()
}

func (c repeating) Stream(ctx context.Context, s protocol.Stream) (conn net.Conn, err error) {
	err = repeat(ctx, func() error { conn, err = c.Client.Stream(ctx, s); return err })
	return conn, err
}

func (c repeating) Watch(ctx context.Context) iter.Seq2[protocol.State, error] {
	return func(yield func(protocol.State, error) bool) {
		_ = repeat(ctx, func() error {
			for s, err := range c.Client.Watch(ctx) {
				if late(err) && ctx.Err() == nil {
					return err
				}
				if !yield(s, err) {
					return nil
				}
			}
			return nil
		})
	}
}

// path is a path in the launcher's /run.
func (p *pod) path(name string) string { return fmt.Sprintf("/proc/%d/root/run/%s", p.launcher, name) }

func (p *pod) until(what string, is func() bool) {
	p.Helper()
	for deadline := time.Now().Add(longest); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			require.FailNow(p, "timeout: "+what)
		}
	}
}

// says waits until the guest has written words n times.
func (p *pod) says(words string, n int) {
	p.Helper()
	p.until("the guest says "+words, func() bool { return strings.Count(p.console.String(), words) >= n })
}

// write writes to the guest's serial port.
func (p *pod) write(words string) {
	p.Helper()
	c, err := net.Dial("unix", p.path("kubevirt-private/6f1c2a3e-9a43-4f0e-8d2b-0c54a7b1e9d2/virt-serial0"))
	require.NoError(p, err)
	defer c.Close()
	_, err = c.Write([]byte(words))
	require.NoError(p, err)
}

// run puts the VMI and waits until its guest is up.
func (p *pod) run() {
	p.Helper()
	require.NoError(p, p.client.Put(p.Context(), protocol.Desired{Instance: instance()}))
	p.phase(protocol.Running)
	p.says("test guest is up", 1)
}

func (p *pod) phase(want protocol.Phase) {
	p.Helper()
	p.until("the phase is "+string(want), func() bool {
		s, err := p.client.State(p.Context())
		require.NoError(p, err)
		require.True(p, s.Phase != protocol.Ended || want == protocol.Ended, "%+v", s.End)
		return s.Phase == want
	})
}

// reports waits until the launcher reports a state that is what.
func (p *pod) reports(what string, is func(protocol.State) bool) {
	p.Helper()
	p.until("the state has "+what, func() bool {
		s, err := p.client.State(p.Context())
		require.NoError(p, err)
		return is(s)
	})
}

// ends waits for the end and checks it, and that the exit code and the
// termination log say the same. It returns the last state.
func (p *pod) ends(want protocol.EndReason, message string) protocol.State {
	p.Helper()
	log, err := os.Open(p.path("termination-log"))
	require.NoError(p, err)
	defer log.Close()
	var last protocol.State
	for s, err := range p.client.Watch(p.Context()) {
		require.NoError(p, err)
		last = s
	}
	require.NotNil(p, last.End)
	require.Equal(p, want, last.End.Reason, last.End.Message)
	require.Contains(p, last.End.Message, message)
	code := <-p.exited
	require.Equal(p, want.Succeeded(), code == 0, "exit code %d", code)
	b := make([]byte, 4096)
	n, _ := log.ReadAt(b, 0)
	require.Equal(p, last.End.Termination(), string(b[:n]))
	return last
}

// process is the child of the launcher that runs the program, or 0.
func (p *pod) process(program string) int {
	for _, pid := range children(p.launcher) {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if strings.HasPrefix(program, strings.TrimSpace(string(b))) && len(bytes.TrimSpace(b)) > 0 {
			return pid
		}
	}
	return 0
}

func (p *pod) kill(pid int, s unix.Signal) {
	p.Helper()
	require.NotZero(p, pid)
	require.NoError(p, unix.Kill(pid, s))
}

func child(parent int) int {
	if c := children(parent); len(c) > 0 {
		return c[0]
	}
	return 0
}

func children(parent int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var all []int
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
		if pp, _ := strconv.Atoi(string(fields[1])); pp == parent {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			all = append(all, pid)
		}
	}
	return all
}

// instance has a boot disk, a seed and an empty disk.
func instance() *vmi.VirtualMachineInstance {
	v := &vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "vm", UID: "6f1c2a3e-9a43-4f0e-8d2b-0c54a7b1e9d2"}}
	v.Spec.Domain.Memory = &vmi.Memory{Guest: new(resource.MustParse("32Mi"))}
	virtio := &vmi.DiskTarget{Bus: vmi.DiskBusVirtio}
	v.Spec.Domain.Devices.Disks = []vmi.Disk{{Name: "root", Disk: virtio}, {Name: "seed", Disk: virtio}, {Name: "empty", Disk: virtio}}
	v.Spec.Volumes = []vmi.Volume{
		{Name: "root", VolumeSource: vmi.VolumeSource{ContainerDisk: &vmi.ContainerDisk{Image: "example/guest:1"}}},
		{Name: "seed", VolumeSource: vmi.VolumeSource{CloudInitNoCloud: &vmi.CloudInitNoCloud{UserData: "#!/bin/sh"}}},
		{Name: "empty", VolumeSource: vmi.VolumeSource{EmptyDisk: &vmi.EmptyDisk{Capacity: resource.MustParse("1Gi")}}},
	}
	return v
}

// bootable is a container disk with the guest of package testguest.
func bootable() map[string][]byte {
	return map[string][]byte{"guest.img": testguest.Disk()}
}
