package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// claim makes a claim of the storage class, or of the default one.
func (s space) claim(name, size string, mode corev1.PersistentVolumeMode, class *string) {
	s.t.Helper()
	s.claimWith(name, size, mode, func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = class })
}

// claimWith makes a claim of the default storage class, after the change.
func (s space) claimWith(name, size string, mode corev1.PersistentVolumeMode, change func(*corev1.PersistentVolumeClaim)) {
	s.t.Helper()
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeMode: &mode,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}
	change(c)
	_, err := world.kube.CoreV1().PersistentVolumeClaims(s.name).Create(s.t.Context(), c, metav1.CreateOptions{})
	require.NoError(s.t, err)
}

// filledClaim makes a claim with a file system and calls fill with a folder that shows
// it. No pod is needed: the claim says that the scheduler has chosen a node.
func (s space) filledClaim(name, size string, fill func(dir string)) {
	s.t.Helper()
	s.claimWith(name, size, corev1.PersistentVolumeFilesystem, func(c *corev1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{"volume.kubernetes.io/selected-node": "n1"}
	})
	var device string
	eventually(s.t, long, func() error {
		c, err := world.kube.CoreV1().PersistentVolumeClaims(s.name).Get(s.t.Context(), name, metav1.GetOptions{})
		if err != nil || c.Status.Phase != corev1.ClaimBound {
			return fmt.Errorf("claim %s is not bound: %w", name, err)
		}
		v, err := world.kube.CoreV1().PersistentVolumes().Get(s.t.Context(), c.Spec.VolumeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		device = v.Spec.CSI.VolumeAttributes["device"]
		return nil
	})
	dir := s.t.TempDir()
	require.NoError(s.t, unix.Mount(device, dir, "ext4", 0, ""))
	defer func() { require.NoError(s.t, unix.Unmount(dir, 0)) }()
	fill(dir)
}

// grow makes a claim larger.
func (s space) grow(name, size string) {
	s.t.Helper()
	patch := fmt.Sprintf(`{"spec":{"resources":{"requests":{"storage":%q}}}}`, size)
	_, err := world.kube.CoreV1().PersistentVolumeClaims(s.name).Patch(s.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(s.t, err)
}

// apply applies a manifest in the namespace.
func (s space) apply(manifest string) {
	s.t.Helper()
	out, err := world.kubectl.RunInput(s.t.Context(), strings.NewReader(manifest), "-n", s.name, "apply", "-f", "-")
	require.NoError(s.t, err, out)
}

// withClaim adds a virtio disk in the claim, with a serial number of the same name.
func withClaim(name string) vmitest.Option {
	return func(v *vmi.VirtualMachineInstance) {
		vmitest.WithDisk(name, vmi.VolumeSource{PersistentVolumeClaim: &vmi.PersistentVolumeClaimVolume{
			PersistentVolumeClaimVolumeSource: corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})(v)
		d := &v.Spec.Domain.Devices.Disks[len(v.Spec.Domain.Devices.Disks)-1]
		d.Serial, d.Disk = name, &vmi.DiskTarget{Bus: vmi.DiskBusVirtio}
	}
}

// vmOf makes a VM of the VMI's spec that always runs.
func (s space) vmOf(v *vmi.VirtualMachineInstance) *vmi.VirtualMachine {
	s.t.Helper()
	made, err := world.vmis.VirtualMachines(s.name).Create(s.t.Context(), &vmi.VirtualMachine{
		ObjectMeta: metav1.ObjectMeta{Name: v.Name},
		Spec: vmi.VirtualMachineSpec{RunStrategy: new(vmi.RunAlways), Template: &vmi.VirtualMachineInstanceTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: v.Labels}, Spec: v.Spec,
		}},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	return made
}

// run sets the run strategy of a VM.
func (s space) run(name string, to vmi.RunStrategy) {
	s.t.Helper()
	patch := fmt.Sprintf(`{"spec":{"runStrategy":%q}}`, to)
	_, err := world.vmis.VirtualMachines(s.name).Patch(s.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(s.t, err)
}

// awaitPrinted waits until the VM has the printable status.
func (s space) awaitPrinted(name string, want vmi.PrintableStatus) *vmi.VirtualMachine {
	s.t.Helper()
	var v *vmi.VirtualMachine
	eventually(s.t, long, func() (err error) {
		if v, err = world.vmis.VirtualMachines(s.name).Get(s.t.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		if v.Status.PrintableStatus != want {
			return fmt.Errorf("VM %s is %s and not %s: %+v", name, v.Status.PrintableStatus, want, v.Status.Conditions)
		}
		return nil
	})
	return v
}

// onClaims writes to the console what is on the disks whose serial numbers begin with
// claim-, and then writes to them.
const onClaims = `#!/bin/sh
mkdir -p /tmp
for b in /sys/block/vd*; do
  serial=$(cat $b/serial)
  case $serial in claim-*) ;; *) continue ;; esac
  disk=/dev/${b##*/}
  echo "$serial of $(cat $b/size) sectors holds [$(dd if=$disk bs=5 count=1 2>/dev/null | tr -d '\000')]" > /dev/console
  printf kept! | dd of=$disk bs=5 conv=notrunc,fsync 2>/dev/null
  cat $b/size > /tmp/was-${b##*/}
done
sync
echo "claims are written" > /dev/console
while sleep 1; do
  for b in /sys/block/vd*; do
    was=/tmp/was-${b##*/} size=$(cat $b/size)
    [ ! -e $was ] || [ "$(cat $was)" = $size ] || echo "$(cat $b/serial) grew to $size sectors" > /dev/console
    echo $size > $was
  done
done &
`

func TestWhatAGuestWritesToItsClaimsIsThereAfterAStop(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.claim("claim-files", "64Mi", corev1.PersistentVolumeFilesystem, nil)
	s.claim("claim-block", "16Mi", corev1.PersistentVolumeBlock, nil)
	s.vmOf(guest("keeper", onClaims, withClaim("claim-files"), withClaim("claim-block"), vmitest.WithGracePeriod(5)))
	s.awaitPrinted("keeper", vmi.StatusRunning)
	v := s.get("keeper")
	console := s.awaitConsole(v, "claims are written")
	require.Contains(t, console, "claim-files of 122880 sectors holds []", "the claim's size less 5.5 % for the file system, in whole MiB")
	require.Contains(t, console, "claim-block of 32768 sectors holds []")
	for _, d := range s.get("keeper").Status.VolumeStatus {
		if info := d.PersistentVolumeClaimInfo; strings.HasPrefix(d.Name, "claim-") {
			require.NotNil(t, info, d.Name)
			require.Equal(t, d.Name, info.ClaimName)
			require.NotEmpty(t, info.Capacity)
			require.NotEmpty(t, d.Target)
		}
	}

	s.run("keeper", vmi.RunHalted)
	s.awaitPrinted("keeper", vmi.StatusStopped)
	s.awaitGone(v)
	s.run("keeper", vmi.RunAlways)
	s.awaitPrinted("keeper", vmi.StatusRunning)
	console = s.awaitConsole(s.get("keeper"), "claims are written")
	require.Contains(t, console, "claim-files of 122880 sectors holds [kept!]")
	require.Contains(t, console, "claim-block of 32768 sectors holds [kept!]")

	// A snapshot of the claim in use becomes a claim of another VM, and both claims grow. A
	// claim cannot be smaller than what its snapshot holds.
	s.apply(`{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshot, metadata: {name: kept}, spec: {source: {persistentVolumeClaimName: claim-files}}}`)
	s.kubectl("wait", "--for=jsonpath={.status.readyToUse}=true", "volumesnapshot/kept", "--timeout=300s")
	s.claimWith("claim-restored", "96Mi", corev1.PersistentVolumeFilesystem, func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: new("snapshot.storage.k8s.io"), Kind: "VolumeSnapshot", Name: "kept"}
	})
	s.vmOf(guest("copy", onClaims, withClaim("claim-restored"), vmitest.WithGracePeriod(5)))
	s.grow("claim-block", "32Mi")
	s.grow("claim-files", "128Mi")
	s.awaitPrinted("copy", vmi.StatusRunning)
	require.Contains(t, s.awaitConsole(s.get("copy"), "claims are written"), "claim-restored of 184320 sectors holds [kept!]", "grown with its claim at the start")
	s.awaitConsole(s.get("keeper"), "claim-block grew to 65536 sectors")
	s.awaitConsole(s.get("keeper"), "claim-files grew to 245760 sectors")
}

// brokenDisks are what disk.img in a claim may be, and what the VMI says.
var brokenDisks = []struct {
	name string
	make func(image string) error
	says string
}{
	{"larger", func(image string) error {
		return errors.Join(os.WriteFile(image, nil, 0o660), os.Truncate(image, 1<<30))
	},
		"disk.img in it has 1073741824 bytes, and the claim has 33554432: make the claim at least as large as the image"},
	{"linked", func(image string) error { return os.Symlink("/etc/passwd", image) }, "disk.img"},
	{"folder", func(image string) error { return os.Mkdir(image, 0o777) }, "disk.img"},
	{"empty", func(image string) error { return os.WriteFile(image, nil, 0o660) }, "disk.img"},
}

func TestABrokenDiskInAClaimIsNamedOnce(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	for _, b := range brokenDisks {
		s.filledClaim(b.name, "32Mi", func(dir string) { require.NoError(t, b.make(filepath.Join(dir, "disk.img"))) })
		v := vmitest.New(vmitest.WithName(b.name), vmitest.WithMemory("64Mi"), withClaim(b.name), vmitest.WithGracePeriod(1))
		v.UID = ""
		s.create(v)
	}
	for _, b := range brokenDisks {
		v := s.awaitPhase(b.name, vmi.PhaseFailed)
		require.Equal(t, "CannotStart", v.Status.Reason, b.name)
		message := v.Status.Condition(vmi.ConditionReady).Message
		require.Contains(t, message, "volume "+b.name)
		require.Contains(t, message, b.says)
		eventually(t, soon, func() error {
			if said := s.said(v, b.says); said != 1 {
				return fmt.Errorf("%d events of %s contain %q: %+v", said, b.name, b.says, s.events(v))
			}
			return nil
		})
	}
	for _, b := range brokenDisks {
		require.Equal(t, 1, s.said(s.get(b.name), b.says), b.name)
	}
}

// said is how often events of the VMI contain the words.
func (s space) said(v *vmi.VirtualMachineInstance, words string) (times int) {
	for _, e := range s.events(v) {
		if strings.Contains(e.Message, words) {
			times += int(max(e.Count, 1))
		}
	}
	return times
}

func TestAVMWaitsForItsClaim(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.vmOf(guest("early", "#!/bin/sh\n", withClaim("late"), vmitest.WithGracePeriod(1)))
	s.awaitPrinted("early", vmi.StatusPVCNotFound)
	v := s.awaitPhase("early", vmi.PhasePending) // its own status is written beside the VM's
	c := v.Status.Condition(vmi.ConditionSynchronized)
	require.Equal(t, "FailedPvcNotFound", c.Reason)
	require.Contains(t, c.Message, "volume late: PersistentVolumeClaim late does not exist")
	require.EqualValues(t, 1, s.awaitEvent(v, "FailedPvcNotFound").Count)

	// A class that provides nothing binds at once or never.
	s.claim("nowhere", "1Mi", corev1.PersistentVolumeFilesystem, new(string))
	s.vmOf(guest("stuck", "#!/bin/sh\n", withClaim("nowhere"), vmitest.WithGracePeriod(1)))
	s.awaitPrinted("stuck", vmi.StatusUnschedulable)
	require.Contains(t, s.get("stuck").Status.Condition(vmi.ConditionPodScheduled).Message, "PersistentVolumeClaims")

	s.claim("late", "16Mi", corev1.PersistentVolumeFilesystem, nil)
	s.awaitPrinted("early", vmi.StatusRunning)
	require.Nil(t, s.get("early").Status.Condition(vmi.ConditionSynchronized))
}
