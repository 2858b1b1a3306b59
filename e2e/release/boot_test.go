//go:build release

package release

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/e2e/images"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// marking is what the guest runs. It writes to the console which marks it finds in the
// variables of the firmware, in the TPM and on its disk, and the endorsement key of the TPM,
// and leaves the mark of this start in all three.
//
// The TPM is given TPM2_NV_Read, TPM2_ReadPublic of 0x81010001, TPM2_NV_DefineSpace and
// TPM2_NV_Write, with the owner's authorization, which is empty, and an index of 8 bytes.
const marking = `#!/bin/sh
mark=%s
insmod /lib/modules/efivarfs.ko
variables=/sys/firmware/efi/efivars
mount -t efivarfs efivarfs $variables
exec 3<>/dev/tpm0
tpm() {
  printf "$1" >&3
  dd bs=4096 count=1 <&3 2>/dev/null
}
owner='\100\000\000\001'
index='\001\200\000\001'
auth='\000\000\000\011\100\000\000\011\000\000\000\000\000'
word() { tr -cd a-z; }
nvram=$(cat $variables/Podvisor* | word)
inTPM=$(tpm "\200\002\000\000\000\043\000\000\001\116$owner$index$auth\000\010\000\000" | dd bs=1 skip=16 2>/dev/null | word)
disk=$(dd if=/dev/vdb bs=512 count=1 2>/dev/null | word)
key=$(tpm '\200\001\000\000\000\016\000\000\001\163\201\001\000\001' | md5sum | cut -c1-32)
tpm "\200\002\000\000\000\055\000\000\001\052$owner$auth\000\000\000\016$index\000\013\002\006\000\006\000\000\000\010" >/dev/null
rc=$(tpm "\200\002\000\000\000\053\000\000\001\067$owner$index$auth\000\010$mark\000\000" | od -An -tx1 -j6 -N4 | tr -d ' ')
printf "\007\000\000\000$mark" > $variables/Podvisor$mark-5c0f4b6e-2f0b-4d0e-9f52-8f0a9f6f7a11 || rc=nvram
printf "$mark" | dd of=/dev/vdb conv=fsync 2>/dev/null || rc=disk
echo "marks: nvram=$nvram tpm=$inTPM disk=$disk key=$key; left: $rc" > /dev/console
`

var marked = regexp.MustCompile(`marks: nvram=([a-z]*) tpm=([a-z]*) disk=([a-z]*) key=([0-9a-f]{32}); left: ([0-9a-z]*)`)

// found is what the guest says in a start.
type found struct{ nvram, tpm, disk, key string }

// keeping is a VMI whose firmware, TPM and disk are kept in volumes of its pod. The mark
// has 8 letters.
func keeping(machineType, mark string) *vmi.VirtualMachineInstance {
	return vmitest.New(vmitest.WithName("keeping"), vmitest.WithMemory("192Mi"),
		vmitest.WithContainerDisk("root", "example/demo-guest:1"), vmitest.WithClaim("data", "data"),
		vmitest.WithCloudInit("seed", fmt.Sprintf(marking, mark)), func(v *vmi.VirtualMachineInstance) {
			d := &v.Spec.Domain
			d.Machine = &vmi.Machine{Type: machineType}
			d.Firmware = &vmi.Firmware{Bootloader: &vmi.Bootloader{EFI: &vmi.EFI{SecureBoot: new(false), Persistent: new(true)}}}
			d.Devices.TPM = &vmi.TPM{Persistent: new(true)}
			v.Status.VolumeStatus = []vmi.VolumeStatus{{Name: "data", PersistentVolumeClaimInfo: &vmi.PersistentVolumeClaimInfo{
				ClaimName: "data", Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("4Mi")},
			}}}
		})
}

// pod makes the root of an image, $ROOT, that of a pod and starts the launcher of the
// image in it, as the user of the image and with the volumes of the pod. There is no /dev/kvm.
const pod = `
cd "$ROOT"
mkdir -p proc sys dev run
mount -t proc proc proc
mount -t sysfs -o ro sys sys
mount -t tmpfs -o mode=0755 tmpfs dev
cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty dev/
mkdir dev/shm && chmod 1777 dev/shm
touch dev/termination-log && chmod 666 dev/termination-log
mount -t tmpfs -o mode=0755 tmpfs run
private=run/kubevirt-private
mkdir -p run/kubevirt/sockets run/kubevirt/container-disks/root run/kubevirt-ephemeral-disks $private/nvram $private/swtpm $private/vmi-disks/data
chown 107:107 run/kubevirt/sockets run/kubevirt-ephemeral-disks $private
mount --bind "$DISK" run/kubevirt/container-disks/root
mount --bind "$STATE/nvram" $private/nvram
mount --bind "$STATE/swtpm" $private/swtpm
mount --bind "$STATE/data" $private/vmi-disks/data
exec chroot --userspec=107:107 --groups=107 . /usr/bin/virt-launcher "$@"
`

// side is one of the two versions.
type side struct {
	name string
	// root is the folder with the files of its virt-launcher-full.
	root string
}

// start starts the VMI by the version until its guest has left its marks, and ends it. It
// returns what the guest found, and the machine type that it ran on.
func (r side) start(t *testing.T, v *vmi.VirtualMachineInstance, disk, state string) (found, string) {
	t.Helper()
	began := time.Now()
	console, log := &testenv.Output{}, &testenv.Output{}
	cmd := exec.Command("unshare", "--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child", "sh", "-ec", pod, "pod",
		"--namespace", v.Namespace, "--name", v.Name, "--uid", string(v.UID), "--allow-emulation")
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "ROOT=" + r.root, "DISK=" + disk, "STATE=" + state}
	cmd.Stdout, cmd.Stderr = console, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if t.Failed() {
			t.Logf("console of %s:\n%s\nlog:\n%s", r.name, console, log)
		}
	})
	until := func(what string, is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(6 * time.Minute); !is(); time.Sleep(50 * time.Millisecond) {
			require.True(t, time.Now().Before(deadline), "timeout: %s", what)
		}
	}
	client := control.NewClient(func(ctx context.Context) (net.Conn, error) {
		launcher, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
		if err != nil {
			return nil, err
		}
		return (&net.Dialer{}).DialContext(ctx, "unix", fmt.Sprintf("/proc/%s/root/run/kubevirt/sockets/launcher-sock", strings.TrimSpace(string(launcher))))
	})
	until("the launcher answers", func() bool { _, err := client.State(t.Context()); return err == nil })
	require.NoError(t, client.Put(t.Context(), protocol.Desired{Instance: v}))
	var marks []string
	until("the guest leaves its marks", func() bool {
		s, err := client.State(t.Context())
		require.NoError(t, err)
		require.NotEqual(t, protocol.Ended, s.Phase, "%+v", s.End)
		marks = marked.FindStringSubmatch(console.String())
		return marks != nil
	})
	require.Equal(t, "00000000", marks[5], "the guest left its marks")
	s, err := client.State(t.Context())
	require.NoError(t, err)
	require.NoError(t, client.Put(t.Context(), protocol.Desired{Instance: v, Stop: &protocol.Stop{GracePeriodSeconds: 120}}))
	for last, err := range client.Watch(t.Context()) {
		require.NoError(t, err)
		require.True(t, last.End == nil || last.End.Reason == protocol.Shutdown, "%+v", last.End)
	}
	require.NoError(t, <-ended)
	t.Logf("%s: ran on %s and found %q, in %.0f s", r.name, s.Machine, marks[1:5], time.Since(began).Seconds())
	return found{marks[1], marks[2], marks[3], marks[4]}, s.Machine
}

// A guest with UEFI firmware, a TPM and a disk that the earlier version, which PREVIOUS
// names, started first is started by this one, and by the earlier one again.
func TestAGuestOfTheEarlierImageFindsItsStateUnderThisOne(t *testing.T) {
	testenv.Root(t)
	commit := os.Getenv("PREVIOUS")
	require.NotEmpty(t, commit, "PREVIOUS names the commit or tag of the version before")
	dir, err := os.MkdirTemp("", "podvisor-boot-") // user 107 enters it
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))

	const full = "virt-launcher-full"
	e, err := BuildEarlier(t.Context(), "../..", commit, filepath.Join(dir, "tree"), "virt-launcher", full)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	require.NoError(t, err)
	built, err := images.Build(t.Context(), images.Config{Names: []string{full, "demo-guest"}, Out: t.Output()})
	require.NoError(t, err)
	earlier, this := side{commit, filepath.Join(dir, "earlier")}, side{"this version", filepath.Join(dir, "this")}
	disk, state := filepath.Join(dir, "disk"), filepath.Join(dir, "state")
	require.NoError(t, images.Unpack(images.Built{Tar: e.Tars[full]}, earlier.root))
	require.NoError(t, images.Unpack(built[0], this.root))
	require.NoError(t, images.Unpack(built[1], disk))
	for _, volume := range []string{"nvram", "swtpm", "data"} { // as the kubelet makes it: root's
		require.NoError(t, os.MkdirAll(filepath.Join(state, volume), 0o755))
		require.NoError(t, os.Chown(filepath.Join(state, volume), 0, 107))
		require.NoError(t, os.Chmod(filepath.Join(state, volume), 0o775))
	}

	first, machineType := earlier.start(t, keeping("q35", "earliest"), disk, state)
	require.Equal(t, found{key: first.key}, first, "nothing is there yet")
	second, got := this.start(t, keeping(machineType, "presents"), disk, state)
	require.Equal(t, found{"earliest", "earliest", "earliest", first.key}, second)
	require.Equal(t, machineType, got)

	third, got := earlier.start(t, keeping(machineType, "returned"), disk, state)
	require.Equal(t, found{"earliestpresents", "presents", "presents", first.key}, third, "a rollback finds what this version wrote")
	require.Equal(t, machineType, got)
}
