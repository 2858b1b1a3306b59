package apiserver

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
)

func TestALifeTakesFiveWritesOfTheController(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.control()
	v := s.start("vm")
	require.Equal(t, map[types.UID]string{s.pod(v).UID: "n1"}, v.Status.ActivePods)
	require.Equal(t, "n1", v.Status.NodeName)
	require.Equal(t, "podvisor/virt-launcher:v1", v.Status.LauncherContainerImageVersion)
	require.NotNil(t, v.Status.QOSClass)

	s.delete("vm")
	v = s.await("vm", func(v *vmi.VirtualMachineInstance) bool { return v.DeletionTimestamp != nil })
	require.NoError(t, s.report(v, "n1", phase(vmi.PhaseSucceeded)))
	s.awaitGone("vm")
	const m = "virtualmachineinstances/vm"
	require.Equal(t, []string{"POST pods 201",
		"PATCH " + m + " 200", // the label of its node
		"PATCH " + m + "/status 200", "PATCH pods/status 200",
		"PATCH " + m + " 200", // its finalizer
	}, texts(s.quick(v, 0)))
	s.awaitEvents(v, "Normal SuccessfulCreate ×1")
}

// quick are the writes from the place on, without those of Scheduling.
func (s space) quick(v *vmi.VirtualMachineInstance, from int) []write {
	return quick(s.writes.from(from), "PATCH virtualmachineinstances/"+v.Name+"/status 200", v.CreationTimestamp.Time, "PATCH pods/status 200")
}

func TestAControllerThatDiedAfterMakingThePodFindsItAgain(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	v := s.create(guest("vm"))
	p, err := pod.Render(v, build("before"))
	require.NoError(t, err)
	p, err = s.asController().Pods(s.name).Create(t.Context(), p, metav1.CreateOptions{})
	require.NoError(t, err)
	s.control()
	s.awaitPhase("vm", vmi.PhaseScheduling)
	l, err := s.pods.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, l.Items, 1)
	require.Equal(t, p.UID, l.Items[0].UID)
}

func TestTwoControllersMakeOnePodForEachVMI(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.control()
	s.control()
	const n = 20
	for i := range n {
		s.create(guest(fmt.Sprintf("vm%d", i)))
	}
	for i := range n {
		s.awaitPhase(fmt.Sprintf("vm%d", i), vmi.PhaseScheduling)
	}
	l, err := s.pods.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, l.Items, n)
}

func TestAControllerThatStartsAgainWritesNothing(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	stop := s.control()
	s.start("vm")
	s.awaitGates()
	stop()
	before := s.writes.all()
	s.control()
	s.awaitPhase(s.create(guest("later")).Name, vmi.PhaseScheduling)
	require.Len(t, s.writes.all(), len(before)+2, "only the pod and the status of the later VMI")
}

func TestAVMIThatIsDeletedBeforeItRunsIsRemovedWithItsPod(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.control()
	v := s.create(guest("vm"))
	p := s.pod(v)
	s.awaitPhase("vm", vmi.PhaseScheduling)
	s.delete("vm")
	s.awaitGone("vm")
	_, err := s.pods.Get(t.Context(), p.Name, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	s.awaitEvents(v, "Normal SuccessfulCreate ×1", "Normal SuccessfulDelete ×1", "Normal Deleted ×1")
}

func TestADeletedVMIWaitsForItsHandlerAndThenForItsPod(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.control()
	v := s.start("vm")
	p := s.pod(v)
	s.delete("vm")
	// When the controller has handled a VMI that was created later, it has also
	// handled the deletion.
	s.awaitPhase(s.create(guest("later")).Name, vmi.PhaseScheduling)
	_, err := s.vmis.Get(t.Context(), "vm", metav1.GetOptions{})
	require.NoError(t, err)
	s.vanish(p)
	s.nothingLeft("vm")
	s.awaitGone("vm")
}

func TestAVMIWhosePodVanishedFailsWhenItsHandlerReportsIt(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.control()
	v := s.start("vm")
	s.vanish(s.pod(v))
	require.Equal(t, vmi.PhaseRunning, s.awaitRemoved("vm").Status.Phase)
	err := s.report(s.awaitRemoved("vm"), "n2", phase(vmi.PhaseFailed))
	require.True(t, apierrors.IsForbidden(err), "another handler reports nothing of it: %v", err)
	stale := v
	err = s.report(stale, "n1", phase(vmi.PhaseSucceeded))
	require.True(t, apierrors.IsConflict(err), "a handler that has not seen it reports nothing: %v", err)
	s.nothingLeft("vm")
	v = s.awaitPhase("vm", vmi.PhaseFailed)
	require.Equal(t, "PodGone", v.Status.Reason)
	s.awaitEvents(v, "Normal SuccessfulCreate ×1")
	s.delete("vm")
	s.awaitGone("vm")
}

func TestAPodThatEndedWithoutAHandlerIsAnsweredFor(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.control()
	crashed, off := s.start("crashed"), s.start("off")
	s.status(s.pod(crashed), exited(1, metav1.Now(), "Crashed: QEMU was killed"))
	s.status(s.pod(off), exited(0, metav1.NewTime(time.Now().Add(-time.Minute)), "Shutdown: "))
	crashed, off = s.awaitPhase("crashed", vmi.PhaseFailed), s.awaitPhase("off", vmi.PhaseSucceeded)
	require.Equal(t, "Crashed", crashed.Status.Reason)
	require.Equal(t, "QEMU was killed", crashed.Status.Condition(vmi.ConditionReady).Message)
	require.Equal(t, corev1.ConditionFalse, off.Status.Condition(vmi.ConditionReady).Status)
}

func TestTheSpecCannotBeChanged(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.create(guest("vm"))
	_, err := s.vmis.Patch(t.Context(), "vm", types.MergePatchType, []byte(`{"spec":{"domain":{"memory":{"guest":"1Gi"}}}}`), metav1.PatchOptions{})
	require.ErrorContains(t, err, "cannot be changed")
}
