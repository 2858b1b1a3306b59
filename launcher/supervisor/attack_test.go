package supervisor

import (
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/launcher/process"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// reader is testdata/reader.s.
const reader = "" +
	"fa31c08ed88ed0bc007cfcfbbee77ce8ab00f4bafd03eca80174f7baf803" +
	"ec3c6f74763c72747c3c7774343c7875e3c606d67c81b80042e87200721b" +
	"bef97ce87b00be0080b91800e86b00be0b7de86c00fe06d67cebddbe0d7d" +
	"e86000ebb3c606d67c80c606df7c01b80042e83d00721ac606d67c81c606" +
	"df7c00b80043e82b007208be257de83400eb87c606df7c00be337de82700" +
	"e979ffba0406b80020efe96fffbaf90cb006eee966ffbed77c8a16d67ccd" +
	"13c3ace80d00e2fac3ac08c07413e80200ebf650bafd03eca82074fb58ba" +
	"f803eec30010000100008000000000000000000000746573742067756573" +
	"742069732075700a006469736b20626567696e73207769746820000a0074" +
	"6861742077617320746865206c617374206469736b0a006469736b207772" +
	"697474656e0a006469736b206661696c65640a00"

// secretText is what no guest may read.
const secretText = "SECRET OF THE POD"

// secretFile makes a file that QEMU in the sandbox may read, under the same name as
// outside it.
func secretFile(t *testing.T) string {
	t.Helper()
	require.NoError(t, prepared())
	f, err := os.CreateTemp(shared(), "secret")
	require.NoError(t, err)
	content := make([]byte, 1<<20)
	copy(content, secretText)
	_, err = f.Write(content)
	require.NoError(t, err)
	require.NoError(t, f.Chmod(0o644))
	require.NoError(t, f.Close())
	return f.Name()
}

// naming is a qcow2 image whose backing file is secret. QEMU, asked for the content
// without further care, returns that of the secret.
func naming(t *testing.T, secret string) []byte {
	t.Helper()
	p := filepath.Join(t.TempDir(), "image")
	qemuImg := testenv.Program(t, "qemu-img")
	out, err := exec.Command(qemuImg, "create", "-q", "-f", "qcow2", "-o", "compat=0.10", "-u", "-F", "raw", "-b", secret, p, "1M").CombinedOutput()
	require.NoError(t, err, "%s", out)
	image, err := os.ReadFile(p)
	require.NoError(t, err)
	out, err = exec.Command(qemuImg, "convert", "-O", "raw", p, p+".raw").CombinedOutput()
	require.NoError(t, err, "%s", out)
	got, err := os.ReadFile(p + ".raw")
	require.NoError(t, err)
	require.Equal(t, secretText, string(got[:len(secretText)]), "the attack succeeds where nothing prevents it")
	return image
}

// readerDisk is a disk with the reader in its boot sector, and second in its second
// sector.
func readerDisk(t *testing.T, second []byte) []byte {
	t.Helper()
	code, err := hex.DecodeString(reader)
	require.NoError(t, err)
	disk := make([]byte, 1<<20)
	copy(disk, code)
	disk[510], disk[511] = 0x55, 0xaa
	copy(disk[512:1024], second)
	return disk
}

func TestAttackAContainerDiskThatNamesASecretStartsNoQEMU(t *testing.T) {
	t.Parallel()
	secret := secretFile(t)
	p := newPod(t, map[string][]byte{"disk.qcow2": naming(t, secret)})
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: instance()}))
	last := p.ends(protocol.CannotStart, "volume root, container disk example/guest:1: /disk/disk.qcow2: the qcow2 image has a backing file")
	require.NotContains(t, last.End.Message, secret)
	require.NotContains(t, p.log.String(), "the disks are made")
}

// heldDaemon is a libvirt daemon that starts when the file open exists.
func heldDaemon(t *testing.T) (daemon, open string) {
	t.Helper()
	require.NoError(t, prepared())
	dir, err := os.MkdirTemp(shared(), "daemon")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	out, err := exec.Command("install", "-m", "0755", testenv.Program(t, filepath.Join(testenv.LauncherRoot(t), process.DaemonPath)), filepath.Join(dir, "libvirtd")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	open = filepath.Join(dir, "open")
	script := "#!/bin/sh\nwhile [ ! -e " + open + " ]; do sleep 0.05; done\nexec " + filepath.Join(dir, "libvirtd") + " \"$@\"\n"
	daemon = filepath.Join(dir, "held")
	require.NoError(t, os.WriteFile(daemon, []byte(script), 0o755))
	return daemon, open
}

func TestAttackAnImageThatNamesASecretAfterItsInspectionGivesItToNoGuest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before func(t *testing.T) []byte
		reads  string
	}{
		"a raw image stays raw": {func(*testing.T) []byte { return make([]byte, 1<<20) }, "disk begins with QFI"},
		"a qcow2 image stays without a backing file": {func(t *testing.T) []byte {
			p := filepath.Join(t.TempDir(), "image")
			require.NoError(t, exec.Command(testenv.Program(t, "qemu-img"), "create", "-q", "-f", "qcow2", p, "1M").Run())
			b, err := os.ReadFile(p)
			require.NoError(t, err)
			return b
		}, "disk begins with \x00\x00\x00\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			image := naming(t, secretFile(t))
			daemon, open := heldDaemon(t)
			second, err := os.MkdirTemp(shared(), "second")
			require.NoError(t, err)
			require.NoError(t, os.Chmod(second, 0o755))
			require.NoError(t, os.Mkdir(filepath.Join(second, "disk"), 0o755))
			path := filepath.Join(second, "disk", "disk.img")
			require.NoError(t, os.WriteFile(path, tt.before(t), 0o644))

			v := ordered()
			v.Spec.Domain.Devices.Disks[1].Name, v.Spec.Volumes[1] = "second", v.Spec.Volumes[0]
			v.Spec.Volumes[1].Name = "second"
			v.Spec.Volumes[1].VolumeSource = vmi.VolumeSource{ContainerDisk: &vmi.ContainerDisk{Image: "example/second:1"}}
			p := newPod(t, map[string][]byte{"reader.img": readerDisk(t, nil)}, "DAEMON="+daemon, "SECOND="+second)
			require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: v}))
			p.logs("the disks are made")
			require.NoError(t, os.WriteFile(path, image, 0o644))
			require.NoError(t, os.WriteFile(open, nil, 0o644))

			p.phase(protocol.Running)
			p.says("test guest is up", 1)
			p.write("x")
			p.says("that was the last disk", 1)
			require.Contains(t, p.console.String(), tt.reads)
			require.NotContains(t, p.console.String(), secretText)
		})
	}
}

func TestAttackAGuestThatMakesItsDiskAnImageReadsNoSecret(t *testing.T) {
	t.Parallel()
	p := newPod(t, map[string][]byte{"reader.img": readerDisk(t, naming(t, secretFile(t)))})
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: ordered()}))
	p.phase(protocol.Running)
	p.says("test guest is up", 1)
	p.write("w")
	p.says("disk written", 1)
	p.kill(p.process("libvirtd"), unix.SIGKILL) // its successor examines the disks of the domain
	p.logs("no session with the libvirt daemon")
	p.reports("no session that is lost", func(s protocol.State) bool { return s.Finding == nil })
	p.write("r")
	p.says("test guest is up", 2)
	p.write("x")
	p.says("that was the last disk", 1)
	require.Contains(t, p.console.String(), "disk begins with QFI", "the guest reads what it wrote to the raw disk of cloud-init")
	require.NotContains(t, p.console.String(), secretText)
}

// ordered is the VMI of the tests with a boot order of all disks: the BIOS knows no
// others.
func ordered() *vmi.VirtualMachineInstance {
	v := instance()
	for i := range v.Spec.Domain.Devices.Disks {
		v.Spec.Domain.Devices.Disks[i].BootOrder = new(uint(i + 1))
	}
	return v
}

// logs waits until the launcher has logged words.
func (p *pod) logs(words string) {
	p.Helper()
	p.until("the launcher logs "+words, func() bool { return strings.Contains(p.log.String(), words) })
}
