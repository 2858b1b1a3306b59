package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
	_, err := world.kube.CoreV1().PersistentVolumeClaims(s.name).Create(s.t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeMode: &mode, StorageClassName: class,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
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
		Spec: vmi.VirtualMachineSpec{RunStrategy: new(vmi.RunAlways), Template: &vmi.VirtualMachineInstanceTemplate{
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
for b in /sys/block/vd*; do
  serial=$(cat $b/serial)
  case $serial in claim-*) ;; *) continue ;; esac
  disk=/dev/${b##*/}
  echo "$serial of $(cat $b/size) sectors holds [$(dd if=$disk bs=5 count=1 2>/dev/null | tr -d '\000')]" > /dev/console
  printf kept! | dd of=$disk bs=5 conv=notrunc,fsync 2>/dev/null
done
sync
echo "claims are written" > /dev/console
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
}

func TestAVMWaitsForItsClaim(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.vmOf(guest("early", "#!/bin/sh\n", withClaim("late"), vmitest.WithGracePeriod(1)))
	s.awaitPrinted("early", vmi.StatusPVCNotFound)
	v := s.get("early")
	c := v.Status.Condition(vmi.ConditionSynchronized)
	require.Equal(t, vmi.Pending, v.Status.Phase)
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
