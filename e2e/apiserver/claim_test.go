package apiserver

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// createClaim makes a claim of 1Gi.
func (s space) createClaim(name string, mode corev1.PersistentVolumeAccessMode) {
	s.t.Helper()
	_, err := world.kube.CoreV1().PersistentVolumeClaims(s.name).Create(s.t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{mode},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
}

func TestTheSecondVMIOnAClaimStartsWhenTheFirstHasEnded(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.control()
	s.createClaim("data", corev1.ReadWriteOnce)
	on := func(name string, more ...vmitest.Option) *vmi.VirtualMachineInstance {
		v := guest(name)
		vmitest.WithClaim("data", "data")(v)
		for _, o := range more {
			o(v)
		}
		return s.create(v)
	}
	mounted := func(v *vmi.VirtualMachineInstance) {
		d := &v.Spec.Domain.Devices
		d.Disks = slices.DeleteFunc(d.Disks, func(d vmi.Disk) bool { return d.Name == "data" })
		d.Filesystems = []vmi.Filesystem{{Name: "data", Virtiofs: &vmi.FilesystemVirtiofs{}}}
	}
	first := s.pod(on("first"))
	on("mounter", mounted)
	require.Contains(t, s.awaitReason("mounter", vmi.ConditionSynchronized, instance.ClaimInUse).Message, "data is a disk of VMI first")
	s.delete("mounter")
	s.awaitGone("mounter")
	second := on("second")
	c := s.awaitReason("second", vmi.ConditionSynchronized, instance.ClaimInUse)
	require.Contains(t, c.Message, "volume data: PersistentVolumeClaim data is a disk of VMI first")
	s.awaitEvents(second, "Warning ClaimInUse ×1")
	s.bind(first, "n1")
	s.status(first, running)
	s.awaitPhase("first", vmi.PhaseScheduled)
	require.Equal(t, vmi.PhasePending, s.awaitPhase("second", vmi.PhasePending).Status.Phase)

	s.delete("first")
	s.vanish(first)
	s.awaitRemoved("first")
	require.Equal(t, instance.ClaimInUse, s.awaitReason("second", vmi.ConditionSynchronized, instance.ClaimInUse).Reason, "its guest may write")
	s.nothingLeft("first")
	s.awaitGone("first")
	s.pod(second)
	s.awaitPhase("second", vmi.PhaseScheduling)
}

func TestVMIsThatMountAClaimAsAFileSystemShareIt(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.control()
	s.createClaim("data", corev1.ReadWriteMany)
	for _, name := range []string{"first", "second"} {
		v := guest(name)
		v.Spec.Volumes = append(v.Spec.Volumes, vmi.Volume{Name: "shared", VolumeSource: vmi.VolumeSource{PersistentVolumeClaim: &vmi.PersistentVolumeClaimVolume{
			PersistentVolumeClaimVolumeSource: corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
		}}})
		v.Spec.Domain.Devices.Filesystems = []vmi.Filesystem{{Name: "shared", Virtiofs: &vmi.FilesystemVirtiofs{}}}
		p := s.pod(s.create(v))
		s.bind(p, "n1")
		s.status(p, running)
		s.awaitPhase(name, vmi.PhaseScheduled)
	}
}
