package apiserver

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestTheSecondVMIOnAClaimStartsWhenTheFirstHasEnded(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.control()
	_, err := world.kube.CoreV1().PersistentVolumeClaims(s.name).Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	on := func(name string) *vmi.VirtualMachineInstance {
		v := guest(name)
		vmitest.WithClaim("data", "data")(v)
		return s.create(v)
	}
	first := s.pod(on("first"))
	second := on("second")
	c := s.awaitReason("second", vmi.ConditionSynchronized, instance.ClaimInUse)
	require.Contains(t, c.Message, "volume data: PersistentVolumeClaim data is a disk of VMI first")
	s.awaitEvents(second, "Warning ClaimInUse ×1")
	s.bind(first, "n1")
	s.status(first, running)
	s.awaitPhase("first", vmi.Scheduled)
	require.Equal(t, vmi.Pending, s.awaitPhase("second", vmi.Pending).Status.Phase)

	s.delete("first")
	s.vanish(first)
	s.awaitGone("first")
	s.pod(second)
	s.awaitPhase("second", vmi.Scheduling)
	s.awaitEvents(second, "Normal SuccessfulCreate ×1", "Warning ClaimInUse ×1")
}
