package vmitest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

var _ record.EventRecorder = &vmitest.Recorder{}

func TestTheInstanceOfAVMIsOwnedByIt(t *testing.T) {
	t.Parallel()
	m := vmitest.NewVM(vmi.RunAlways, vmitest.WithName("web"), vmitest.WithLabel("app", "web"), vmitest.WithCores(2))
	v := vmitest.InstanceOf(m, vmitest.InPhase(vmi.PhaseRunning))
	require.True(t, metav1.IsControlledBy(v, m))
	require.Equal(t, "web", v.Labels["app"])
	require.Equal(t, m.Spec.Template.Spec, v.Spec)
	require.Equal(t, vmi.PhaseRunning, v.Status.Phase)
	v.Spec.Domain.CPU.Cores, v.Labels["app"] = 3, "other"
	require.Equal(t, uint32(2), m.Spec.Template.Spec.Domain.CPU.Cores, "it is a copy")
	require.Equal(t, "web", m.Spec.Template.ObjectMeta.Labels["app"])
	require.Empty(t, vmitest.InstanceOf(&vmi.VirtualMachine{}).Spec.Volumes, "of a VM without a template")
}

func TestAVMIInEachPhaseHasWhatItHasThen(t *testing.T) {
	t.Parallel()
	for _, p := range vmitest.Phases() {
		v := vmitest.New(vmitest.InPhase(p))
		require.Equal(t, p, v.Status.Phase)
		ready := v.Status.Condition(vmi.ConditionReady)
		require.Equal(t, p == vmi.PhaseRunning, ready != nil && ready.Status == corev1.ConditionTrue, p)
		onNode := p != vmi.PhaseUnset && p != vmi.PhasePending && p != vmi.PhaseScheduling
		require.Equal(t, onNode, v.Status.NodeName == vmitest.Node, p)
		require.Equal(t, p != vmi.PhaseUnset && p != vmi.PhasePending, len(v.Status.ActivePods) == 1, p)
	}
	require.Equal(t, vmi.VirtualMachineInstanceStatus{}, vmitest.New(vmitest.InPhase(vmi.PhaseRunning), vmitest.InPhase(vmi.PhaseUnset)).Status)
}

func TestANodeHasItsLabels(t *testing.T) {
	t.Parallel()
	n := vmitest.NewNode("n1", map[string]string{"zone": "a", vmi.SchedulableLabel: ""})
	require.Equal(t, map[string]string{corev1.LabelHostname: "n1", corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux", "zone": "a"}, n.Labels)
	require.Equal(t, "true", vmitest.NewNode("n1", nil).Labels[vmi.SchedulableLabel])
	require.False(t, n.Status.Allocatable.Name(vmi.KVMResource, "").IsZero())
}

func TestARecorderKeepsWhatIsSaid(t *testing.T) {
	t.Parallel()
	r := &vmitest.Recorder{}
	require.Empty(t, r.Events())
	v := vmitest.New()
	r.Eventf(v, corev1.EventTypeNormal, "Seen", "%d of %d", 1, 2)
	r.AnnotatedEventf(v, map[string]string{"a": "b"}, corev1.EventTypeWarning, "Lost", "gone")
	about := corev1.ObjectReference{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachineInstance", Namespace: "default", Name: "testvmi", UID: vmitest.UID}
	require.Equal(t, []corev1.Event{
		{InvolvedObject: about, Type: "Normal", Reason: "Seen", Message: "1 of 2", Count: 1},
		{InvolvedObject: about, Type: "Warning", Reason: "Lost", Message: "gone", Count: 1},
	}, r.Events())
}
