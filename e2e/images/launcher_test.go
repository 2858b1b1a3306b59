package images

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/testenv"
)

// built makes one image for amd64, in the user's cache.
func built(t *testing.T, name string) Built {
	t.Helper()
	return builtFor(t, name, amd64)
}

func builtFor(t *testing.T, name, arch string) Built {
	t.Helper()
	testenv.Program(t, "apt-get")
	testenv.Program(t, "dpkg-deb")
	testenv.Root(t)
	b, err := Build(t.Context(), Config{Names: []string{name}, Architecture: arch, Out: t.Output()})
	require.NoError(t, err)
	require.Len(t, b, 1)
	return b[0]
}

// files returns what is in an image.
func files(t *testing.T, b Built) tree {
	t.Helper()
	all, _, err := read(b)
	require.NoError(t, err)
	return all
}

// A domain with every kind of device for which the image keeps something, that
// libvirt starts by itself when it starts.
const definition = `<domain type='qemu'>
  <name>demo</name><uuid>0f3cbd2e-8c5b-4b47-9a3f-0d2f6a1f9e11</uuid>
  <memory unit='MiB'>128</memory><vcpu>1</vcpu>
  <os><type arch='x86_64' machine='q35'>hvm</type><boot dev='hd'/></os>
  <features><acpi/><apic/><tcg><tb-cache unit='MiB'>32</tb-cache></tcg></features>
  <cpu mode='maximum'/>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='/tmp/overlay.qcow2'/><target dev='vda' bus='virtio'/></disk>
    <disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='/tmp/data.qcow2'/><target dev='sda' bus='sata'/></disk>
    <disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='/tmp/data2.qcow2'/><target dev='sdb' bus='scsi'/></disk>
    <controller type='scsi' model='virtio-scsi'/>
    <interface type='user'><model type='virtio'/><rom enabled='no'/></interface>
    <interface type='user'><model type='e1000'/><rom enabled='no'/></interface>
    <serial type='file'><source path='/tmp/serial.log'/><target port='0'/></serial>
    <input type='tablet' bus='usb'/>
    <controller type='usb' model='qemu-xhci'/>
    <graphics type='vnc' socket='/tmp/vnc.sock'/>
    <video><model type='virtio'/></video>
    <rng model='virtio'><backend model='random'>/dev/urandom</backend></rng>
    <memballoon model='virtio'/>
  </devices>
</domain>
`

func TestTheLauncherImageBootsTheDemoGuestWithoutPrivileges(t *testing.T) {
	launcher, guest := files(t, built(t, "virt-launcher")), files(t, built(t, "demo-guest"))
	root := t.TempDir()
	// The folders above a test's are closed to other users.
	for dir := root; dir != os.TempDir(); dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	launcher.add("/disk/demo-guest.qcow2", guest["/disk/demo-guest.qcow2"])
	require.NoError(t, launcher.writeDir(root))
	const home = "/tmp/libvirt"
	require.NoError(t, prepareProbe(root, home))
	qemuImg(t, root, "create", "-q", "-f", "qcow2", "-b", "/disk/demo-guest.qcow2", "-F", "qcow2", "/tmp/overlay.qcow2")
	qemuImg(t, root, "create", "-q", "-f", "qcow2", "/tmp/data.qcow2", "64M")
	qemuImg(t, root, "create", "-q", "-f", "qcow2", "/tmp/data2.qcow2", "64M")
	autostart(t, filepath.Join(root, home, "libvirt", "qemu"))

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := daemon(ctx, root, home)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { cancel(); <-ended })

	serial := filepath.Join(root, "tmp", "serial.log")
	if !waitFor(t, 6*time.Minute, func() bool {
		b, _ := os.ReadFile(serial)
		return strings.Contains(string(b), "podvisor-guest: ready, serving HTTP on port 80")
	}) {
		cancel()
		err := <-ended
		ended <- err
		log, _ := os.ReadFile(serial)
		qemuLog, _ := os.ReadFile(filepath.Join(root, home, "libvirt", "qemu", "log", "demo.log"))
		t.Fatalf("the guest did not become ready (%v)\nserial: %s\nlibvirtd: %s\nQEMU: %s", err, log, said.String(), qemuLog)
	}
	require.FileExists(t, filepath.Join(root, "tmp", "vnc.sock"))
	// A library that is missing, or of another version, is complained about by the loader.
	require.NotContains(t, said.String(), "version information")
	require.NotContains(t, said.String(), "symbol lookup error")
}

// autostart defines the domain so that libvirt starts it.
func autostart(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "autostart"), 0o755))
	for _, name := range []string{"demo.xml", "autostart/demo.xml"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(definition), 0o644))
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "autostart", "demo.xml")))
	require.NoError(t, os.Symlink("/tmp/libvirt/libvirt/qemu/demo.xml", filepath.Join(dir, "autostart", "demo.xml")))
	require.NoError(t, exec.Command("chown", "-R", "107:107", dir).Run())
}

// qemuImg runs the image's qemu-img as the user of the launcher.
func qemuImg(t *testing.T, root string, args ...string) {
	t.Helper()
	out, err := exec.Command("chroot", append([]string{"--userspec=107:107", root, "/usr/bin/qemu-img"}, args...)...).CombinedOutput()
	require.NoError(t, err, string(out))
}

// waitFor asks until the answer is yes or the time is over.
func waitFor(t *testing.T, limit time.Duration, yes func() bool) bool {
	t.Helper()
	deadline := time.After(limit)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !yes() {
		select {
		case <-deadline:
			return false
		case <-tick.C:
		}
	}
	return true
}
