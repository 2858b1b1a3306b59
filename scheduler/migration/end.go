package migration

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// kept is how many migrations of a VMI that have ended are kept.
const kept = 5

// succeed is the end of a migration whose guest runs at the target.
func succeed(o Observed) scheduler.Plan {
	p := write(o, func(s *vmi.VirtualMachineInstanceMigrationStatus, now metav1.Time) {
		reach(s, vmi.MigrationPhaseSucceeded, now)
		withoutCondition(s, vmi.ConditionRejectedByResourceQuota)
		s.MigrationState = state(o).DeepCopy()
	}, scheduler.Emit{Finding: vmi.Finding{Reason: SuccessfulMigration, Message: "The VMI runs on node " + state(o).TargetNode}})
	p.Actions = append(p.Actions, released(o)...)
	return p
}

// ended is for a migration that has ended: what it has left is removed.
func ended(o Observed) scheduler.Plan {
	var p scheduler.Plan
	if o.Migration.Status.Phase == vmi.MigrationPhaseFailed {
		p.Actions = append(withoutTarget(o), withoutClaim(o)...)
	} else if left := leftBehind(o); left != nil {
		wait := since(o.Migration, vmi.MigrationPhaseSucceeded).Add(sourceTime).Sub(o.Now)
		if wait > 0 {
			p.Recheck = wait
		} else {
			p.Actions = append(p.Actions, scheduler.DeletePod{Name: left.Name, UID: left.UID})
		}
	}
	p.Actions = append(p.Actions, released(o)...)
	if o.Migration.DeletionTimestamp == nil && (missing(o) || surplus(o)) {
		if dead := deadPod(o); dead != nil {
			p.Actions = append(p.Actions, scheduler.DeletePod{Name: dead.Name, UID: dead.UID})
		}
		p.Actions = append(p.Actions, scheduler.DeleteObject{})
	}
	return p
}

// leftBehind is the pod that the guest has left, while it has not ended. Nil: it has.
func leftBehind(o Observed) *corev1.Pod {
	p := named(o, func(s *vmi.MigrationState) string { return s.SourcePod })
	if p == nil || launched.Ended(p) || p.DeletionTimestamp != nil {
		return nil
	}
	return p
}

// surplus says that five newer migrations of the VMI have ended.
func surplus(o Observed) bool {
	all := newestFirst(append(slices.Clone(o.Others), o.Migration))
	all = slices.DeleteFunc(all, func(m *vmi.VirtualMachineInstanceMigration) bool { return !m.Status.Phase.Final() })
	return slices.Index(all, o.Migration) >= kept
}

// deadPod is the pod that has ended with the migration. Nil: there is none.
func deadPod(o Observed) *corev1.Pod {
	name := func(s *vmi.MigrationState) string { return s.SourcePod }
	if missing(o) {
		return nil // its pods go with it
	}
	if o.Migration.Status.Phase == vmi.MigrationPhaseFailed {
		if o.Target != nil && launched.Ended(o.Target) && o.Target.DeletionTimestamp == nil && !active(o.VMI, o.Target.UID) {
			return o.Target
		}
		name = func(s *vmi.MigrationState) string { return s.TargetPod }
	}
	p := named(o, name)
	if p == nil || !launched.Ended(p) || p.DeletionTimestamp != nil {
		return nil
	}
	return p
}

// named is the pod that the migration's state names, unless the VMI runs in it. Nil: there is
// none.
func named(o Observed, name func(*vmi.MigrationState) string) *corev1.Pod {
	s := o.Migration.Status.MigrationState
	if s == nil || missing(o) {
		return nil
	}
	i := slices.IndexFunc(o.Pods, func(p *corev1.Pod) bool { return p.Name == name(s) && !active(o.VMI, p.UID) })
	if i < 0 {
		return nil
	}
	return o.Pods[i]
}
