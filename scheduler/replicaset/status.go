package replicaset

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// leastBetween is the time between two writes of a status in which only counts differ:
// a hundred VMIs that start or end are few writes.
const leastBetween = time.Second

// counted is what a status counts.
type counted struct {
	replicas, ready int32
	selector        string
}

// count counts the VMIs as they are after the change.
func count(m members, c change, selector string) counted {
	out := counted{replicas: int32(len(c.create)), selector: selector}
	for _, v := range slices.Concat(m.alive, m.adopt) {
		if slices.Contains(c.delete, v) {
			continue
		}
		out.replicas++
		if ready(v) {
			out.ready++
		}
	}
	return out
}

// failure is what is wrong with the set, if anything is.
func failure(o Observed, m members, c change) *vmi.Finding {
	failed := c.failed
	if o.Set.Spec.Paused {
		failed = m.failed
	}
	switch {
	case c.refused:
		return o.Refusal
	case len(failed) > 0:
		return &vmi.Finding{Reason: FailedStart, Message: because(slices.MinFunc(failed, worse))}
	}
	return nil
}

// because is why the VMI failed, and what can be done.
func because(v *vmi.VirtualMachineInstance) string {
	what := "VirtualMachineInstance " + v.Name + " ended before its guest ran"
	if v.Status.HasRun() {
		what = "VirtualMachineInstance " + v.Name + " ended soon after its guest ran"
	}
	if v.Status.Reason != "" {
		what += ": " + v.Status.Reason
	}
	if c := v.Status.Condition(vmi.ConditionReady); c != nil && c.Message != "" {
		what += ": " + c.Message
	}
	return what + ". It is replaced after a while; to replace it now, delete it"
}

// writeStatus is the plan that makes the status say what is observed: what is wrong, and
// which VMIs are of an earlier template.
func writeStatus(o Observed, n counted, f, old *vmi.Finding) scheduler.Plan {
	set, now := o.Set.DeepCopy(), metav1.NewTime(o.Now)
	s := &set.Status
	condition(s, vmi.ConditionReplicaFailure, f, now)
	var paused *vmi.Finding
	if set.Spec.Paused {
		paused = &vmi.Finding{Reason: Paused, Message: "spec.paused is true: no VMI is created or deleted"}
	}
	condition(s, vmi.ConditionReplicaPaused, paused, now)
	condition(s, vmi.ConditionReplicaOutdated, old, now)
	s.LabelSelector = n.selector
	countsOnly := equality.Semantic.DeepEqual(set.Status, o.Set.Status)
	s.Replicas, s.ReadyReplicas = n.replicas, n.ready
	if equality.Semantic.DeepEqual(set.Status, o.Set.Status) {
		return scheduler.Plan{}
	}
	if left := o.StatusWritten.Add(leastBetween).Sub(o.Now); left > 0 && countsOnly {
		return scheduler.Plan{Recheck: left}
	}
	p := scheduler.Plan{Actions: []scheduler.Action{scheduler.WriteStatus[*vmi.VirtualMachineInstanceReplicaSet]{Object: set}}}
	is, was := s.Condition(vmi.ConditionReplicaFailure), o.Set.Status.Condition(vmi.ConditionReplicaFailure)
	if is != nil && (was == nil || was.Reason != is.Reason) {
		p.Actions = append(p.Actions, scheduler.Emit{Warning: true, Finding: vmi.Finding{Reason: is.Reason, Message: is.Message}})
	}
	return p
}

// condition sets the condition if there is a finding, and removes it if not.
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
