package apiserver

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/e2e/simulate"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestAVMIWaitsForAGuestOfWhichNeitherVMINorPodIsLeft(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.control()
	s.createClaim("data", corev1.ReadWriteMany)
	first := s.start("first", vmitest.WithClaim("data", "data"))
	s.vanish(s.pod(first))
	s.awaitRemoved("first")
	s.delete("first")
	_, err := s.vmis.Patch(t.Context(), "first", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	s.awaitGone("first")

	second := guest("second")
	vmitest.WithClaim("data", "data")(second)
	s.create(second)
	c := s.awaitReason("second", vmi.ConditionSynchronized, instance.ClaimInUse)
	require.Contains(t, c.Message, "VMI first, which does not exist any more, and whose pod")
	require.Contains(t, c.Message, "was removed while its guest ran on node n1")
	again := guest("first")
	vmitest.WithClaim("data", "data")(again)
	s.create(again)
	s.awaitReason("first", vmi.ConditionSynchronized, instance.ClaimInUse)
}

func TestALibvirtDaemonThatDoesNotAnswerIsSaidAndTakenBack(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	k := s.simulateNodes(simulate.Guest{})
	s.control()
	s.create(guest("vm"))
	v := s.awaitPhase("vm", vmi.PhaseRunning)
	l := k.Launchers()[0]
	l.Change(func(s *protocol.State) {
		s.Finding = &vmi.Finding{Reason: "LibvirtUnavailable", Message: "the libvirt daemon does not answer"}
	})
	require.Equal(t, "the libvirt daemon does not answer", s.awaitReason("vm", vmi.ConditionSynchronized, "LibvirtUnavailable").Message)
	require.Equal(t, vmi.PhaseRunning, s.awaitPhase("vm", vmi.PhaseRunning).Status.Phase)
	l.Change(func(s *protocol.State) { s.Finding = nil })
	s.await("vm", func(v *vmi.VirtualMachineInstance) bool { return v.Status.Condition(vmi.ConditionSynchronized) == nil })
	s.awaitEvents(v, "Normal SuccessfulCreate ×1", "Normal Started ×1", "Warning SyncFailed ×1")
}
