package migration

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// Times that nothing waits longer than.
const (
	// prepareTime is how long both nodes may take from the hand-over until memory is sent.
	prepareTime = 60 * time.Second
	// repeatTime is the time between two calls of a migration that is under way, and
	// retryTime the time after a call that was not done.
	repeatTime = 10 * time.Second
	retryTime  = 2 * time.Second
	// brief is how long a phase lasts that is not written: most migrations are through it.
	brief = 2 * time.Second
	// reportTime is how long the handler of the source may take to report the end of a
	// migration that it was asked to end, or whose target is over.
	reportTime = 5 * time.Second
	// sourceTime is how long the pod that a VMI has left may run on.
	sourceTime = 30 * time.Second
	// waitTime is when a migration in the queue is looked at again if nothing changes.
	waitTime = 30 * time.Second
)

// Decide says what is to be done. The most urgent situation comes first:
//
//	migration             VMI, target                 what is done
//	ended                 any                         finalizer is removed; pods that are left are deleted;
//	                                                  the migration is, if the VMI is gone or has five newer ones
//	any                   VMI gone                    Failed
//	handed over           completed, also of a VMI    Succeeded or Failed, with a copy of migrationState
//	                      that has ended since
//	any                   VMI ended                   Failed, also in migrationState
//	not handed over       deleted migration or VMI    target is deleted; Failed
//	not handed over       another migration is first  Failed
//	not handed over       VMI cannot move             Failed
//	PreparingTarget+      handed over to another      Failed
//	handed over           deleted migration           the source's handler is asked to abort
//	handed over           target over or gone         the same
//	handed over           not sent after 60 s         the same
//	handed over           any                         both handlers are called, and again while it lasts; phase
//	                                                  PreparingTarget, TargetReady, Running
//	Scheduling            no target, or it has ended  Failed
//	Scheduling            target waits too long       target is deleted; Failed
//	Scheduling            target runs                 the VMI is handed over to its node
//	new, Pending          target exists               Scheduling
//	new, Pending          there is a place            target is created; Scheduling
//	new, Pending          there is none               Pending
//
// A migration that is handed over and is to end is failed by the handler of the source, and
// here only if that one knows nothing of it, the target is over or the VMI has ended: see
// [Decide]'s stop.
func Decide(o Observed) scheduler.Plan {
	p, m := decide(o), o.Migration
	if final(o) || m.DeletionTimestamp != nil || len(p.Actions) == 0 {
		return p
	}
	// Where something is missing the webhook was not asked. The migration is not to vanish
	// while there is a target.
	var first []scheduler.Action
	if !slices.Contains(m.Finalizers, vmi.MigrationFinalizer) {
		first = append(first, scheduler.AddFinalizer{Finalizer: vmi.MigrationFinalizer})
	}
	if _, ok := m.Labels[vmi.MigrationSelectorLabel]; !ok && m.Spec.VMIName != "" {
		first = append(first, scheduler.SetLabel{Key: vmi.MigrationSelectorLabel, Value: m.Spec.VMIName})
	}
	p.Actions = append(first, p.Actions...)
	return p
}

func decide(o Observed) scheduler.Plan {
	switch {
	case final(o):
		return ended(o)
	case missing(o):
		return fail(o, "the VMI does not exist any more")
	case o.VMI.Status.Phase.Final() && !mine(o):
		return fail(o, hasEnded(o))
	case o.VMI.Status.Phase.Final() && !state(o).Completed:
		return writeFailure(o, hasEnded(o))
	case mine(o):
		return moving(o)
	case o.Migration.DeletionTimestamp != nil:
		return fail(o, "the migration was deleted before the VMI was handed over")
	case o.VMI.DeletionTimestamp != nil:
		return fail(o, "the VMI is being deleted")
	case rank(o.Migration.Status.Phase) > rank(vmi.MigrationPhaseScheduled):
		return fail(o, "another migration has the VMI")
	}
	if first := firstOf(o); first != o.Migration {
		return fail(o, fmt.Sprintf("the migration %s of this VMI has not ended", first.Name))
	}
	if o.Migration.Status.Phase == vmi.MigrationPhaseScheduling || o.Migration.Status.Phase == vmi.MigrationPhaseScheduled || o.Target != nil {
		return schedule(o)
	}
	return queue(o)
}

func hasEnded(o Observed) string {
	return fmt.Sprintf("the VMI has ended in phase %s", o.VMI.Status.Phase)
}

// final says that the migration has ended.
func final(o Observed) bool { return o.Migration.Status.Phase.Final() }

// phases are those of a migration in their order.
var phases = []vmi.MigrationPhase{
	vmi.MigrationPhaseUnset, vmi.MigrationPhasePending, vmi.MigrationPhaseScheduling, vmi.MigrationPhaseScheduled,
	vmi.MigrationPhasePreparingTarget, vmi.MigrationPhaseTargetReady, vmi.MigrationPhaseRunning, vmi.MigrationPhaseSucceeded,
}

func rank(p vmi.MigrationPhase) int { return slices.Index(phases, p) }

// reach makes p the phase of the migration, by way of those between. It never goes back.
func reach(s *vmi.VirtualMachineInstanceMigrationStatus, p vmi.MigrationPhase, now metav1.Time) {
	if p == vmi.MigrationPhaseFailed {
		s.SetPhase(p, now)
		return
	}
	for _, next := range phases[1:] {
		if rank(next) > rank(s.Phase) && rank(next) <= rank(p) {
			s.SetPhase(next, now)
		}
	}
}

// firstOf is the migration of the VMI that goes on: of several that have not ended the one
// that the VMI was handed over for, then one that has a target, then the oldest, then the one
// with the lower UID.
func firstOf(o Observed) *vmi.VirtualMachineInstanceMigration {
	first := o.Migration
	for _, other := range o.Others {
		if !other.Status.Phase.Final() && before(o, other, first) {
			first = other
		}
	}
	return first
}

func before(o Observed, a, b *vmi.VirtualMachineInstanceMigration) bool {
	has := func(m *vmi.VirtualMachineInstanceMigration) int {
		s := state(o)
		switch {
		case s != nil && s.MigrationUID == m.UID && !s.Completed:
			return 0
		case rank(m.Status.Phase) >= rank(vmi.MigrationPhaseScheduling):
			return 1
		}
		return 2
	}
	return cmp.Or(has(a)-has(b), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID)) < 0
}

// writeStatus writes the status of a migration.
type writeStatus = scheduler.WriteStatus[*vmi.VirtualMachineInstanceMigration]

// write is the plan that makes the status what edit makes of it, followed by the actions. It
// is empty if the status does not change.
func write(o Observed, edit func(s *vmi.VirtualMachineInstanceMigrationStatus, now metav1.Time), after ...scheduler.Action) scheduler.Plan {
	m := o.Migration.DeepCopy()
	edit(&m.Status, metav1.NewTime(o.Now))
	if equality.Semantic.DeepEqual(m.Status, o.Migration.Status) {
		return scheduler.Plan{}
	}
	return scheduler.Plan{Actions: append([]scheduler.Action{writeStatus{Object: m}}, after...)}
}

// warn is a warning about the migration.
func warn(reason, message string) scheduler.Emit {
	return scheduler.Emit{Warning: true, Finding: vmi.Finding{Reason: reason, Message: message}}
}

// say is an event about the VMI.
func say(o Observed, warning bool, reason, message string) scheduler.Action {
	return scheduler.EmitFor{Instance: o.VMI, Emit: scheduler.Emit{Warning: warning, Finding: vmi.Finding{Reason: reason, Message: message}}}
}

// fail is the end of a migration whose guest stays where it is, or is none any more. The
// target is deleted before.
func fail(o Observed, why string) scheduler.Plan {
	plan := write(o, func(s *vmi.VirtualMachineInstanceMigrationStatus, now metav1.Time) {
		reach(s, vmi.MigrationPhaseFailed, now)
		if o.Migration.DeletionTimestamp != nil {
			s.SetCondition(abortRequested, now)
		}
		if mine(o) {
			s.MigrationState = state(o).DeepCopy()
		}
	}, warn(FailedMigration, "the migration has failed: "+why))
	plan.Actions = slices.Concat(withoutTarget(o), withoutClaim(o), plan.Actions, released(o))
	return plan
}

// withoutTarget deletes the target, if it may run and the VMI does not run in it.
func withoutTarget(o Observed) []scheduler.Action {
	t := o.Target
	if t == nil || t.DeletionTimestamp != nil || launched.Ended(t) || o.VMI != nil && active(o.VMI, t.UID) {
		return nil
	}
	return []scheduler.Action{scheduler.DeletePod{Name: t.Name, UID: t.UID}}
}

// withoutClaim deletes the claim for the VMI's state that was made for the migration, if the VMI
// was not handed over for it. Of another one the VMI's decision settles what is in it.
func withoutClaim(o Observed) []scheduler.Action {
	if mine(o) || o.Migration.Status.MigrationState != nil {
		return nil
	}
	return discardClaim(o)
}

// discardClaim deletes the claim for the VMI's state that was made for the migration, if it is
// not known to have the state.
func discardClaim(o Observed) []scheduler.Action {
	c := o.Claim
	if c == nil || c.DeletionTimestamp != nil || c.Labels[vmi.MigrationNameLabel] == "" {
		return nil
	}
	return []scheduler.Action{scheduler.DeleteClaim{Name: c.Name, UID: c.UID}}
}

// released removes the finalizer.
func released(o Observed) []scheduler.Action {
	if !slices.Contains(o.Migration.Finalizers, vmi.MigrationFinalizer) {
		return nil
	}
	return []scheduler.Action{scheduler.RemoveFinalizer{Finalizer: vmi.MigrationFinalizer}}
}
