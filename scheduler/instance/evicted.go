package instance

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// requested makes the condition say whether the VMI has to leave its node. The webhook for
// evictions and the handler that the VMI comes to write both at once: this is for who takes
// the mark away.
func requested(o Observed) scheduler.Plan {
	c := o.VMI.Status.Condition(vmi.ConditionEvictionRequested)
	if node := o.VMI.Status.EvacuationNodeName; node != "" && (c == nil || c.Status != corev1.ConditionTrue) || node == "" && c != nil {
		return write(o, func(s *vmi.VirtualMachineInstanceStatus, now metav1.Time) { s.Evacuate(node, now) })
	}
	return scheduler.Plan{}
}

// inProgress makes the annotation of the active pod say whether the VMI has to leave it.
func inProgress(o Observed) []scheduler.Action {
	p, want := o.Pods.Active, ""
	if o.VMI.Status.EvacuationNodeName != "" && o.VMI.Status.EvacuationNodeName == o.VMI.Status.NodeName {
		want = "true"
	}
	if p.Annotations[vmi.EvictionInProgressAnnotation] == want || p.DeletionTimestamp != nil || !ours(o, p) {
		return nil
	}
	return []scheduler.Action{scheduler.AnnotatePod{Name: p.Name, UID: p.UID, Key: vmi.EvictionInProgressAnnotation, Value: want}}
}
