package instance_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
)

func TestAVMIAndItsPodSayThatItHasToLeave(t *testing.T) {
	t.Parallel()
	marked := func(v *vmi.VirtualMachineInstance) { v.Status.Evacuate(node, metav1.NewTime(now)) }
	markedBefore := func(v *vmi.VirtualMachineInstance) { v.Status.EvacuationNodeName = node }
	cancelled := func(v *vmi.VirtualMachineInstance) { marked(v); v.Status.EvacuationNodeName = "" }
	annotated := func(p *corev1.Pod) { p.Annotations[vmi.EvictionInProgressAnnotation] = "true" }
	annotate := func(value string) *scheduler.AnnotatePod {
		return &scheduler.AnnotatePod{Name: launcher().Name, UID: podUID, Key: "descheduler.alpha.kubernetes.io/eviction-in-progress", Value: value}
	}
	for name, tt := range map[string]struct {
		vmi            *vmi.VirtualMachineInstance
		source, target *corev1.Pod
		// condition is whether the condition is True afterwards, and writes whether it is written.
		condition, writes bool
		want              *scheduler.AnnotatePod
	}{
		"it need not":                     {stored(vmi.PhaseRunning, readyNow), launcher(running), nil, false, false, nil},
		"it has to":                       {stored(vmi.PhaseRunning, readyNow, marked), launcher(running), nil, true, false, annotate("true")},
		"its pod says so":                 {stored(vmi.PhaseRunning, readyNow, marked), launcher(running, annotated), nil, true, false, nil},
		"it was marked by an older build": {stored(vmi.PhaseRunning, readyNow, markedBefore), launcher(running, annotated), nil, true, true, nil},
		"that was cancelled":              {stored(vmi.PhaseRunning, readyNow, cancelled), launcher(running, annotated), nil, false, true, annotate("")},
		"its migration has failed":        {stored(vmi.PhaseRunning, moves, readyNow, hasFailed, marked), launcher(running, annotated), secondPod(running), true, false, nil},
		"it moves":                        {stored(vmi.PhaseRunning, moves, readyNow, marked), launcher(running, annotated), secondPod(running), true, false, nil},
		"it has left":                     {stored(vmi.PhaseRunning, arrived), launcher(running, annotated), secondPod(running), false, false, nil},
		"its pod is being deleted":        {stored(vmi.PhaseRunning, readyNow, marked), launcher(running, leaving), nil, true, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, wrote := tt.vmi.Status, false
			var got *scheduler.AnnotatePod
			for _, a := range instance.Decide(observe(tt.vmi, tt.source, tt.target)).Actions {
				switch a := a.(type) {
				case writeStatus:
					status, wrote = a.Object.Status, true
				case scheduler.AnnotatePod:
					got = &a
				}
			}
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.writes, wrote)
			c := status.Condition(vmi.ConditionEvictionRequested)
			require.Equal(t, tt.condition, c != nil && c.Status == corev1.ConditionTrue)
		})
	}
}
