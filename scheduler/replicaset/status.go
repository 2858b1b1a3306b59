package replicaset

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// leastBetween is the time between two writes of a status in which only the number of
// ready VMIs differs, while they start.
const leastBetween = time.Second

// FailedStart is the reason of the condition ReplicaFailure while VMIs of the set end
// without ever running.
const FailedStart = "FailedStart"

// write is the plan that makes the status say what is observed.
func write(o Observed, m members, f *vmi.Finding, selector string) scheduler.Plan {
	set := o.Set.DeepCopy()
	describe(set, m, f, selector, metav1.NewTime(o.Now))
	if equality.Semantic.DeepEqual(set.Status, o.Set.Status) {
		return scheduler.Plan{}
	}
	counted := set.DeepCopy()
	counted.Status.ReadyReplicas = o.Set.Status.ReadyReplicas
	settled := set.Status.ReadyReplicas == set.Status.Replicas
	if left := o.Written.Add(leastBetween).Sub(o.Now); left > 0 && !settled && equality.Semantic.DeepEqual(counted.Status, o.Set.Status) {
		return scheduler.Plan{Recheck: left}
	}
	p := scheduler.Plan{Actions: []scheduler.Action{scheduler.WriteStatus[*vmi.VirtualMachineInstanceReplicaSet]{Object: set}}}
	is, was := set.Status.Condition(vmi.ConditionReplicaFailure), o.Set.Status.Condition(vmi.ConditionReplicaFailure)
	if is != nil && (was == nil || was.Reason != is.Reason) {
		p.Actions = append(p.Actions, scheduler.Emit{Warning: true, Finding: vmi.Finding{Reason: is.Reason, Message: is.Message}})
	}
	return p
}

func describe(set *vmi.VirtualMachineInstanceReplicaSet, m members, f *vmi.Finding, selector string, now metav1.Time) {
	s := &set.Status
	s.LabelSelector, s.Replicas, s.ReadyReplicas = selector, int32(len(m.alive)), 0
	for _, v := range m.alive {
		if ready(v) {
			s.ReadyReplicas++
		}
	}
	if f == nil && len(m.held) > 0 {
		f = &vmi.Finding{Reason: FailedStart, Message: because(m.held[0])}
	}
	condition(s, vmi.ConditionReplicaFailure, f, now)
	var paused *vmi.Finding
	if set.Spec.Paused {
		paused = &vmi.Finding{Reason: "Paused", Message: "spec.paused is true: no VMI is made or deleted"}
	}
	condition(s, vmi.ConditionReplicaPaused, paused, now)
}

// because is why the VMI ended.
func because(v *vmi.VirtualMachineInstance) string {
	what := "VirtualMachineInstance " + v.Name + " ended before its guest ran"
	if v.Status.Reason != "" {
		what += ": " + v.Status.Reason
	}
	if c := v.Status.Condition(vmi.ConditionReady); c != nil && c.Message != "" {
		what += ": " + c.Message
	}
	return what
}

// condition sets the condition if there is a finding.
func condition(s *vmi.VirtualMachineInstanceReplicaSetStatus, t vmi.ConditionType, f *vmi.Finding, now metav1.Time) {
	if f == nil {
		s.RemoveCondition(t)
		return
	}
	s.SetCondition(vmi.Condition{Type: t, Status: corev1.ConditionTrue, Reason: f.Reason, Message: f.Message}, now)
}

func ready(v *vmi.VirtualMachineInstance) bool {
	c := v.Status.Condition(vmi.ConditionReady)
	return c != nil && c.Status == corev1.ConditionTrue
}
