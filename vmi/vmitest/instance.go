package vmitest

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
)

// began is when the phases of VMIs began.
var began = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

// InstanceOf makes the VMI that virt-controller makes of the VM: with its name, with spec,
// labels and annotations of its template, and owned by it. It has no phase yet.
func InstanceOf(m *vmi.VirtualMachine, options ...Option) *vmi.VirtualMachineInstance {
	v := &vmi.VirtualMachineInstance{
		TypeMeta: metav1.TypeMeta{APIVersion: vmi.GroupVersion.String(), Kind: vmi.VirtualMachineInstances.Kind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: m.Namespace, Name: m.Name, UID: InstanceUID,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(m, vmi.VirtualMachines.GroupVersionKind)},
		},
	}
	if t := m.Spec.Template; t != nil {
		v.Labels, v.Annotations = maps.Clone(t.ObjectMeta.Labels), maps.Clone(t.ObjectMeta.Annotations)
		v.Spec = *t.Spec.DeepCopy()
	}
	for _, o := range options {
		o(v)
	}
	return v
}

// Phases are the phases that a VMI can have, in the order of its life.
func Phases() []vmi.Phase {
	return []vmi.Phase{vmi.PhaseUnset, vmi.PhasePending, vmi.PhaseScheduling, vmi.PhaseScheduled, vmi.PhaseRunning, vmi.PhaseSucceeded, vmi.PhaseFailed, vmi.PhaseUnknown}
}

// InPhase gives the VMI the phase, with what the components have written to the status of
// a VMI until then: its pod, its node Node and the condition Ready, which is true of one that
// is Running alone. WithPhase sets nothing but the phase.
func InPhase(p vmi.Phase) Option {
	return func(v *vmi.VirtualMachineInstance) {
		v.Status = vmi.VirtualMachineInstanceStatus{}
		if p == vmi.PhaseUnset {
			return
		}
		v.Status.SetPhase(p, began)
		if p == vmi.PhasePending {
			return
		}
		node := Node
		ready := vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Reason: vmi.ReasonGuestNotRunning}
		switch p {
		case vmi.PhaseScheduling:
			node = ""
		case vmi.PhaseRunning:
			ready = vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionTrue}
		case vmi.PhaseUnknown:
			v.Status.Reason = vmi.ReasonNodeUnresponsive
		}
		v.Status.NodeName, v.Status.ActivePods = node, map[types.UID]string{PodUID: node}
		v.Status.SetCondition(ready, began)
	}
}
