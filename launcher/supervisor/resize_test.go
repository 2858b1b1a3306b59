package supervisor

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

// withClaim is the VMI of the tests with a disk in a claim of the size.
func withClaim(size string) *vmi.VirtualMachineInstance {
	v := instance()
	v.Spec.Domain.Devices.Disks = append(v.Spec.Domain.Devices.Disks, vmi.Disk{Name: "data", Disk: &vmi.DiskTarget{Bus: vmi.DiskBusVirtio}})
	v.Spec.Volumes = append(v.Spec.Volumes, vmi.Volume{Name: "data", VolumeSource: vmi.VolumeSource{PersistentVolumeClaim: &vmi.PersistentVolumeClaimVolume{
		PersistentVolumeClaimVolumeSource: corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}})
	v.Status.VolumeStatus = []vmi.VolumeStatus{{Name: "data", PersistentVolumeClaimInfo: &vmi.PersistentVolumeClaimInfo{
		ClaimName: "data", Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
	}}}
	return v
}

// run executes a program as root of the node.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	testenv.Root(t)
	out, err := exec.Command(testenv.Program(t, name), args...).CombinedOutput()
	require.NoError(t, err, "%s %v: %s", name, args, out)
	return strings.TrimSpace(string(out))
}

// mountNamespace makes a mount namespace for the test, and returns the process that is in it and
// what executes a program there. Of a mount in the namespace of the tests, the namespaces that
// others make have a copy, which keeps its device in use.
func mountNamespace(t *testing.T) (pid string, inside func(args ...string)) {
	t.Helper()
	cmd := exec.Command(testenv.Program(t, "unshare"), "--mount", "sh", "-c", "echo && exec cat")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _, _ = in.Close(), cmd.Wait() })
	_, err = out.Read(make([]byte, 1)) // it is in the namespace
	require.NoError(t, err)
	pid = fmt.Sprint(cmd.Process.Pid)
	return pid, func(args ...string) {
		t.Helper()
		run(t, "nsenter", append([]string{"--mount", "--target", pid}, args...)...)
	}
}

func TestADiskInAFileSystemThatGrewIsLargerAtTheNextStart(t *testing.T) {
	testenv.Root(t)
	testenv.Program(t, "qemu-img")
	root := podRoot(t, bootable())
	dir := filepath.Join(root, "var/run/kubevirt-private/vmi-disks/data")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	store := filepath.Join(t.TempDir(), "store")
	require.NoError(t, os.WriteFile(store, nil, 0o600))
	require.NoError(t, os.Truncate(store, 32<<20))
	run(t, "mkfs.ext4", "-q", "-m", "0", store)
	device := run(t, "losetup", "--find", "--show", store)
	t.Cleanup(func() { run(t, "losetup", "--detach", device) })
	pid, inside := mountNamespace(t)
	inside("mount", device, dir)
	root = filepath.Join("/proc", pid, "root", root)

	disks, err := makeDisks(t.Context(), withClaim("20Mi"), place{root: root})
	require.NoError(t, err)
	require.EqualValues(t, 20<<20, disks["data"].SizeBytes)
	f, err := os.OpenFile(disks["data"].Path, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("kept"), 19<<20)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	disks, err = makeDisks(t.Context(), withClaim("64Mi"), place{root: root})
	require.NoError(t, err)
	require.Less(t, disks["data"].SizeBytes, int64(32<<20), "the file system has not grown yet")

	require.NoError(t, os.Truncate(store, 96<<20))
	inside("umount", dir)
	run(t, "losetup", "--set-capacity", device)
	run(t, "e2fsck", "-f", "-y", device)
	run(t, "resize2fs", device)
	inside("mount", device, dir)
	disks, err = makeDisks(t.Context(), withClaim("64Mi"), place{root: root})
	require.NoError(t, err)
	require.EqualValues(t, 64<<20, disks["data"].SizeBytes)
	content, err := os.ReadFile(disks["data"].Path)
	require.NoError(t, err)
	require.Len(t, content, 64<<20)
	require.Equal(t, "kept", string(content[19<<20:19<<20+4]))

	disks, err = makeDisks(t.Context(), withClaim("62Mi"), place{root: root})
	require.NoError(t, err)
	require.EqualValues(t, 64<<20, disks["data"].SizeBytes, "a disk is never shortened")
}

func TestADiskOfAGuestThatRunsHasTheSizeThatItsCreationWouldGiveIt(t *testing.T) {
	const image = 20 << 20
	for _, tt := range []struct {
		name     string
		claim    string
		settings config.Launcher
		disks    map[string]storage.Attachment
		want     int64
	}{
		{name: "the claim has grown", claim: "64Mi", want: 64 << 20},
		{name: "the node reserves more than is free", claim: "64Mi", settings: config.Launcher{ReserveBytes: 1 << 50}, want: image},
		{name: "the node tolerates a claim that is smaller", claim: "10Mi", settings: config.Launcher{TolerancePercent: 60}, want: image},
		{name: "the embedder gives the disk", claim: "64Mi", disks: map[string]storage.Attachment{"data": {}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			file := filepath.Join(root, vmi.PrivateDir, "vmi-disks/data/disk.img")
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
			require.NoError(t, os.WriteFile(file, nil, 0o600))
			require.NoError(t, os.Truncate(file, image))
			s := &Supervisor{config: Config{Root: root, Disks: tt.disks, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), LogLevel: &slog.LevelVar{}}, facts: newFacts(), inner: t.Context()}
			v := withClaim(tt.claim)
			v.Spec.Domain.Devices.Disks, v.Spec.Volumes = v.Spec.Domain.Devices.Disks[3:], v.Spec.Volumes[3:]
			s.facts.domain = launcher.Running
			require.NoError(t, s.Put(protocol.Desired{Instance: v, Settings: tt.settings}))
			s.work.Wait()
			require.Equal(t, []launcher.Device{{Alias: domain.DiskAlias("data"), Name: "disk data", SizeBytes: tt.want}}, s.facts.devices)
			if tt.disks == nil {
				made, err := makeDisks(t.Context(), v, s.place(tt.settings))
				require.NoError(t, err)
				require.Equal(t, tt.want, made["data"].SizeBytes)
			}
		})
	}
}

func TestADiskOfAGuestThatRunsGrowsWithItsClaim(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable(), "CLAIM=24m")
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Generation: 1, Instance: withClaim("20Mi")}))
	p.phase(protocol.Running)
	p.says("test guest is up", 1)
	sized := func(bytes int64) func(protocol.State) bool {
		return func(s protocol.State) bool {
			return s.Disks[3].Name == "data" && s.Disks[3].SizeBytes == bytes && s.Finding == nil
		}
	}
	p.reports("the disk as large as the claim", sized(20<<20))

	run(t, "nsenter", "--mount", "--target", fmt.Sprint(p.launcher), "mount", "-o", "remount,size=96m", "/run/kubevirt-private/vmi-disks/data")
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Generation: 2, Instance: withClaim("64Mi")}))
	p.reports("the disk as large as the claim is now", sized(64<<20))
	info, err := os.Stat(p.path("kubevirt-private/vmi-disks/data/disk.img"))
	require.NoError(t, err)
	require.EqualValues(t, 64<<20, info.Size())
	seen := run(t, "virsh", "--quiet", "--connect", "qemu:///session?socket="+p.path("kubevirt-private/libvirt/run/libvirt/libvirt-sock"), "domblkinfo", "default_vm", "vdd")
	require.Contains(t, strings.Join(strings.Fields(seen), " "), fmt.Sprintf("Capacity: %d", 64<<20))
	require.Equal(t, 1, strings.Count(p.log.String(), "resize the disk"))

	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Generation: 3, Instance: withClaim("20Mi")}))
	p.reports("the disk as it was", func(s protocol.State) bool { return s.Generation == 3 && sized(64<<20)(s) })
}

func TestADiskThatDidNotGrowIsTriedAgainLater(t *testing.T) {
	f := newFacts()
	f.desired, f.domain = &protocol.Desired{Instance: withClaim("64Mi")}, launcher.Running
	data := launcher.Device{Alias: domain.DiskAlias("data"), Name: "disk data", SizeBytes: 64 << 20}
	small := data
	small.SizeBytes = 20 << 20
	f.devices, f.attached = []launcher.Device{data}, []launcher.Device{small}
	f.observed.Disks = []protocol.Disk{{Name: "data", SizeBytes: small.SizeBytes}}
	reported := f.observed.Disks
	now := time.Now()
	resize := launcher.Operation{Kind: launcher.ResizeDisk, Device: data}
	require.Equal(t, []launcher.Operation{resize}, launcher.Decide(f.observe(now)).Operations)
	f.operations = f.operations.Begin(resize)
	require.Empty(t, launcher.Decide(f.observe(now)).Operations)
	f.operated(resize, nil, os.ErrPermission, now)
	plan := launcher.Decide(f.observe(now))
	require.Empty(t, plan.Operations)
	require.Equal(t, &vmi.Finding{Reason: launcher.ReasonResizeFailed, Message: "resize disk data to 67108864 bytes: permission denied"}, plan.State.Finding)
	require.Equal(t, launcher.Backoff(1), plan.Recheck)

	later := now.Add(plan.Recheck)
	require.Len(t, launcher.Decide(f.observe(later)).Operations, 1)
	f.operated(resize, func(f *facts) { f.resized(data) }, nil, later)
	plan = launcher.Decide(f.observe(later))
	require.Empty(t, plan.Operations)
	require.Nil(t, plan.State.Finding)
	require.EqualValues(t, 20<<20, reported[0].SizeBytes, "what was reported is not changed")
	require.EqualValues(t, 64<<20, f.observed.Disks[0].SizeBytes)
}
