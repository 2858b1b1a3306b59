package libvirt_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/internal/launcher/process"
	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/internal/testguest"
)

// reaping is needed by every daemon: it takes a QEMU for running until it is reaped.
var reaping = sync.OnceValue(func() error {
	r, err := process.NewReaper()
	if err == nil {
		go r.Run(context.Background())
	}
	return err
})

// daemon is a libvirt daemon of an ordinary user with a connection.
type daemon struct {
	*testing.T
	*libvirt.Connection
	dir string
	pid int
}

// mount runs a script in the mount namespace of the daemon and of its QEMU.
func (d daemon) mount(script string) {
	d.Helper()
	out, err := exec.Command("nsenter", fmt.Sprintf("--mount=/proc/%d/ns/mnt", d.pid), "sh", "-ec", script).CombinedOutput()
	require.NoError(d, err, "%s", out)
}

// newDaemon starts a daemon that ends with the test. It has a host name of its own.
func newDaemon(t *testing.T) daemon {
	t.Helper()
	return newDaemonIn(t, nil)
}

// newDaemonIn starts it in a network namespace, where its user can open tap devices
// that belong to it. Nil: that of the test. The daemon is run by the program through, with
// its first arguments, or by none.
func newDaemonIn(t *testing.T, ns *os.File, through ...string) daemon {
	t.Helper()
	testenv.Root(t)
	for _, name := range []string{"setpriv", "unshare", "qemu-img", process.DaemonPath, process.QEMUPath(process.Arch())} {
		testenv.Program(t, name)
	}
	require.NoError(t, reaping())
	dir, err := os.MkdirTemp("/tmp", "libvirt") // the paths of sockets are short, and its user can enter it
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	config := process.NewDaemon(process.Config{Dir: dir})
	require.NoError(t, config.Prepare())
	// libvirt needs a user that has a line in /etc/passwd.
	const uid = "65534"
	_, err = user.LookupId(uid)
	require.NoError(t, err)
	out, err := exec.Command("chown", "-R", uid, dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	output := &testenv.Output{}
	named := `set -e; hostname "$1"; shift; ` + testenv.LauncherMounts + ` exec "$@"`
	if ns != nil {
		tun := dir + "/tun"
		named = `mknod -m 666 ` + tun + ` c 10 200 && mount --bind ` + tun + ` /dev/net/tun || exit 1; ` + named
	}
	cmd := exec.Command("unshare", slices.Concat([]string{"--uts", "--mount", "sh", "-c", named, "sh", filepath.Base(dir)}, through,
		[]string{"setpriv", "--pdeathsig", "KILL", "--reuid", uid, "--clear-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", process.DaemonPath})...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + dir + "/home", "XDG_RUNTIME_DIR=" + dir + "/run", "XDG_CONFIG_HOME=" + dir + "/conf", "XDG_CACHE_HOME=" + dir + "/cache", "LAUNCHER_ROOT=" + testenv.LauncherRoot(t)}
	cmd.Stdout, cmd.Stderr = output, output
	cmd.WaitDelay = time.Second
	if ns == nil {
		require.NoError(t, cmd.Start())
	} else {
		networktest.In(t, ns, func() { err = cmd.Start() })
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		pids, _ := filepath.Glob(dir + "/run/libvirt/qemu/run/*.pid")
		for _, p := range pids {
			b, _ := os.ReadFile(p)
			if pid, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("libvirt:\n%s", output)
		}
	})
	d := daemon{T: t, dir: dir, pid: cmd.Process.Pid}
	d.Connection = d.dial(config.Socket())
	return d
}

// dial connects as soon as the daemon answers.
func (d daemon) dial(socket string) *libvirt.Connection {
	d.Helper()
	var c *libvirt.Connection
	d.until("the daemon answers", func() (err error) {
		c, err = libvirt.Dial(d.Context(), socket)
		return err
	})
	d.Cleanup(func() { _ = c.Close() })
	return c
}

// events are what happens to domains, on a connection of their own.
func (d daemon) events() *events {
	d.Helper()
	c := d.dial(d.dir + "/run/libvirt/libvirt-sock")
	ctx, cancel := context.WithCancel(context.WithoutCancel(d.Context()))
	all, err := c.Events(ctx)
	require.NoError(d, err)
	e := &events{daemon: d}
	var done sync.WaitGroup
	done.Go(func() {
		for got := range all {
			e.mu.Lock()
			e.all = append(e.all, got)
			e.mu.Unlock()
		}
	})
	d.Cleanup(func() {
		cancel()
		_ = c.Close()
		done.Wait()
	})
	return e
}

// events collects events.
type events struct {
	daemon

	mu  sync.Mutex
	all []libvirt.Event
}

// forget drops the events so far.
func (e *events) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = nil
}

// has waits for the event.
func (e *events) has(want libvirt.Event) {
	e.Helper()
	e.until(fmt.Sprintf("the event %+v", want), func() error {
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, got := range e.all {
			if got == want {
				return nil
			}
		}
		return fmt.Errorf("the events are %+v", e.all)
	})
}

// until waits until nothing is wrong any more.
func (d daemon) until(what string, wrong func() error) {
	d.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		err := wrong()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			require.FailNow(d, "timeout: "+what, "%v", err)
		}
	}
}

// name is the name of each test's domain.
const name = "default_vm"

// start starts a domain with the guest of package testguest on its disk vda and the
// given further devices, as XML. It returns when the guest is up. The firmware offers
// the guest only disks with a boot order.
func (d daemon) start(devices string) *guest {
	d.Helper()
	return d.startWith(devices, "")
}

// startWith starts it with further arguments of QEMU, as XML.
func (d daemon) startWith(devices, arguments string) *guest {
	d.Helper()
	var x libvirtxml.Domain
	require.NoError(d, x.Unmarshal(d.domain(devices, arguments)))
	require.NoError(d, d.Create(d.Context(), &x))
	g := &guest{daemon: d}
	g.says(testguest.Up, 1)
	return g
}

// domain is the domain of that guest, as XML. Its disk is made.
func (d daemon) domain(devices, arguments string) string {
	d.Helper()
	root := d.file("root.img", testguest.Disk())
	return fmt.Sprintf(`<domain type="qemu" xmlns:qemu="http://libvirt.org/schemas/domain/qemu/1.0">
  <name>%s</name><memory unit="MiB">32</memory><vcpu>1</vcpu>
  <os><type machine="q35">hvm</type></os>
  <features><acpi/><tcg><tb-cache unit="MiB">16</tb-cache></tcg></features>
  <devices>
    <controller type="pci" model="pcie-root"/>
    <controller type="pci" model="pcie-root-port"/>
    <controller type="pci" model="pcie-root-port"/>
    <controller type="pci" model="pcie-root-port"/>
    <controller type="pci" model="pcie-root-port"/>
    <controller type="pci" model="pcie-root-port"/>
    <controller type="usb" model="none"/>
    <disk type="file" device="disk">
      <driver name="qemu" type="raw"/><source file="%s"/><target dev="vda" bus="virtio"/><alias name="ua-root"/><boot order="1"/>
    </disk>
    <serial type="unix"><source mode="bind" path="%s"/><log file="%s" append="on"/></serial>
    %s
  </devices>
  <qemu:commandline>%s</qemu:commandline>
</domain>`, name, root, d.dir+"/serial", d.dir+"/serial.log", devices, arguments)
}

// file makes a file that QEMU may write.
func (d daemon) file(name string, content []byte) string {
	d.Helper()
	p := filepath.Join(d.dir, name)
	require.NoError(d, os.WriteFile(p, content, 0o666))
	require.NoError(d, os.Chmod(p, 0o666))
	return p
}

// guest is the guest of a domain.
type guest struct{ daemon }

// says waits until the guest has written words n times.
func (g *guest) says(words string, n int) {
	g.Helper()
	g.until("the guest says "+words, func() error {
		b, err := os.ReadFile(g.dir + "/serial.log")
		if err == nil && strings.Count(string(b), words) < n {
			err = fmt.Errorf("it says %q", b)
		}
		return err
	})
}

// types types into the guest's serial port.
func (g *guest) types(words string) {
	g.Helper()
	c, err := net.Dial("unix", g.dir+"/serial")
	require.NoError(g, err)
	defer c.Close()
	_, err = c.Write([]byte(words))
	require.NoError(g, err)
}

// described is the domain as it is.
func (g *guest) described() *libvirtxml.Domain {
	g.Helper()
	x, err := g.Describe(g.Context(), name)
	require.NoError(g, err)
	return x
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}
