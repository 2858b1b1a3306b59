package apiserver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
)

func TestASpecThatCannotWorkIsSaidOnceAndInFull(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.control()
	bad := guest("vm")
	bad.Spec.Domain.Memory = nil
	bad.Spec.Domain.Devices.Disks = append(bad.Spec.Domain.Devices.Disks, vmi.Disk{Name: "nowhere"})
	v := s.create(bad)
	c := s.awaitReason("vm", vmi.ConditionSynchronized, "InvalidSpec")
	require.Contains(t, c.Message, "spec.domain.memory.guest")
	require.Contains(t, c.Message, "nowhere")
	s.awaitEvents(v, "Warning InvalidSpec ×1")
	require.Equal(t, vmi.PhasePending, s.awaitPhase("vm", vmi.PhasePending).Status.Phase)

	s.awaitPhase(s.create(guest("later")).Name, vmi.PhaseScheduling)
	require.Equal(t, []string{"PATCH virtualmachineinstances/vm/status 200"}, s.writes.all()[:1])
	require.Len(t, s.writes.all(), 3, "nothing is written twice")
	s.delete("vm")
	s.awaitGone("vm")
}

func TestAPodThatIsNotAllowedIsTriedUntilItIs(t *testing.T) {
	t.Parallel()
	s := bareSpace(t)
	s.control()
	v := s.create(guest("vm"))
	c := s.awaitReason("vm", vmi.ConditionSynchronized, "FailedCreate")
	require.Contains(t, c.Message, "service account")
	s.awaitEvents(v, "Warning FailedCreate ×1")
	s.allowPods()
	v = s.awaitPhase("vm", vmi.PhaseScheduling)
	require.Nil(t, v.Status.Condition(vmi.ConditionSynchronized))
	s.awaitEvents(v, "Warning FailedCreate ×1", "Normal SuccessfulCreate ×1")
	n := 0
	for _, w := range s.writes.all() {
		if strings.Contains(w, "status") {
			n++
		}
	}
	require.Equal(t, 2, n, "the refusal and the success are one write each")
}

func TestAPodThatTookTheNameIsSaid(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	v := s.create(guest("vm"))
	p, err := pod.Render(v, pod.Config{Launcher: pod.Launcher{Image: "podvisor/virt-launcher:v1", AllowEmulation: true}})
	require.NoError(t, err)
	p.OwnerReferences, p.Labels = nil, nil
	p, err = s.pods.Create(t.Context(), p, metav1.CreateOptions{})
	require.NoError(t, err)
	s.control()
	require.Contains(t, s.awaitReason("vm", vmi.ConditionSynchronized, "PodNameTaken").Message, p.Name)
	s.vanish(p)
	s.awaitPhase("vm", vmi.PhaseScheduling)
}

func TestAPodThatNoNodeHasRoomForIsSaid(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.control()
	v := s.create(guest("vm"))
	p := s.pod(v)
	s.status(p, func(st *corev1.PodStatus) {
		st.Conditions = append(st.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/2 nodes are available: 2 Insufficient memory."})
	})
	require.Contains(t, s.awaitReason("vm", vmi.ConditionPodScheduled, "Unschedulable").Message, "Insufficient memory")
	s.awaitEvents(v, "Normal SuccessfulCreate ×1", "Warning Unschedulable ×1")
	s.bind(p, "n1")
	s.status(p, running)
	v = s.awaitPhase("vm", vmi.PhaseScheduled)
	require.Nil(t, v.Status.Condition(vmi.ConditionPodScheduled))
}

func TestAMissingImageIsSaidWithItsVolume(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.control()
	v := s.create(guest("vm"))
	p := s.pod(v)
	s.bind(p, "n1")
	s.status(p, waiting("ErrImageNeverPull", `Container image "example/fedora:40" is not present with pull policy of Never`))
	c := s.awaitReason("vm", vmi.ConditionSynchronized, "ErrImageNeverPull")
	require.Equal(t, `volume root: Container image "example/fedora:40" is not present with pull policy of Never`, c.Message)
	s.status(p, running)
	v = s.awaitPhase("vm", vmi.PhaseScheduled)
	require.Nil(t, v.Status.Condition(vmi.ConditionSynchronized))
	s.awaitEvents(v, "Normal SuccessfulCreate ×1", "Warning ErrImageNeverPull ×1")
}

func TestAPodThatItsNodeRefusesIsReplaced(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.control()
	v := s.create(guest("vm"))
	first := s.pod(v)
	s.bind(first, "n1")
	s.status(first, func(st *corev1.PodStatus) {
		st.Phase, st.Reason, st.Message = corev1.PodFailed, "UnexpectedAdmissionError", "Allocate failed due to no healthy devices present"
	})
	require.Contains(t, s.awaitReason("vm", vmi.ConditionSynchronized, "UnexpectedAdmissionError").Message, "no healthy devices")
	eventually(t, func() error {
		if p := s.pod(v); p.UID == first.UID {
			return fmt.Errorf("the pod is still the first: %v", p.Status.Phase)
		}
		return nil
	})
	v = s.awaitPhase("vm", vmi.PhaseScheduling)
	require.Nil(t, v.Status.Condition(vmi.ConditionSynchronized))
}
