package migration

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// moving is for a migration that the VMI was handed over for.
func moving(o Observed) scheduler.Plan {
	s := state(o)
	switch {
	case s.Failed:
		return fail(o, s.FailureReason)
	case s.Completed:
		return succeed(o)
	}
	left := prepared(o)
	switch {
	case o.Migration.DeletionTimestamp != nil:
		return stop(o, aborted)
	case o.Target == nil || over(o):
		return stop(o, targetDown)
	case left <= 0:
		why := fmt.Sprintf("the migration did not begin within %s after the hand-over", prepareTime)
		for _, c := range []Asked{o.Calls.Start, o.Calls.Accept} {
			if c.Refusal != nil {
				why += ": " + c.Refusal.Message
			}
		}
		return stop(o, why)
	}
	p := follow(o)
	calls, again := call(o)
	p.Actions = append(p.Actions, calls...)
	p.Recheck = soonest(p.Recheck, again)
	if s.StartTimestamp == nil {
		p.Recheck = soonest(p.Recheck, left)
	}
	return p
}

// prepared is how long the nodes still have until memory is sent. It is positive once that
// has begun.
func prepared(o Observed) time.Duration {
	if state(o).StartTimestamp != nil || rank(o.Migration.Status.Phase) < rank(vmi.MigrationPhasePreparingTarget) {
		return prepareTime
	}
	return since(o.Migration, vmi.MigrationPhasePreparingTarget).Add(prepareTime).Sub(o.Now)
}

// follow writes the phase that the VMI's status says. That of a target that is prepared is
// not written while it is new.
func follow(o Observed) scheduler.Plan {
	phase, s := vmi.MigrationPhasePreparingTarget, state(o)
	switch {
	case s.StartTimestamp != nil:
		phase = vmi.MigrationPhaseRunning
	case s.TargetNodeAddress != "":
		phase = vmi.MigrationPhaseTargetReady
	}
	if left := o.HandedOver.Add(brief).Sub(o.Now); s.StartTimestamp == nil && !o.HandedOver.IsZero() && left > 0 {
		return scheduler.Plan{Recheck: left}
	}
	return write(o, func(s *vmi.VirtualMachineInstanceMigrationStatus, now metav1.Time) {
		reach(s, phase, now)
		withoutCondition(s, vmi.ConditionRejectedByResourceQuota)
	})
}

// call makes the calls that are due: first to the handler of the target, then to that of the
// source. Both are repeated, so that a handler that was restarted goes on.
func call(o Observed) ([]scheduler.Action, time.Duration) {
	accept, start := o.Calls.Accept, o.Calls.Start
	if accept.Now || start.Now {
		return nil, 0 // their answers queue the migration
	}
	if left := accept.rests(o.Now); left <= 0 {
		return []scheduler.Action{scheduler.AcceptMigration{Instance: o.VMI, Pod: targetUID(o)}}, 0
	} else if !accept.done() {
		return nil, left
	}
	if left := start.rests(o.Now); left > 0 {
		return nil, soonest(left, accept.rests(o.Now))
	}
	return []scheduler.Action{startOf(o)}, 0
}

// startOf is the call to the handler of the source.
func startOf(o Observed) scheduler.StartMigration {
	settings := protocol.MigrationSettingsOf(state(o).MigrationConfiguration)
	return scheduler.StartMigration{Instance: o.VMI, Pod: targetUID(o), Settings: settings}
}

// keepOn has the handler of the source go on with a guest of which the target is over. The
// source may run on then, and no start may use what the target has of its state: that is
// discarded before, and before that the handler says that the guest has not moved.
func keepOn(o Observed) (actions []scheduler.Action, again time.Duration) {
	call, discard := startOf(o), discardClaim(o)
	call.Over = true
	asked := o.Calls.Over
	if len(discard) > 0 {
		asked, call.Held = o.Calls.Hold, true
	}
	left := asked.rests(o.Now)
	switch {
	case asked.Now:
		return nil, 0
	case call.Held && asked.done():
		return discard, retryTime
	case left <= 0:
		actions = []scheduler.Action{call}
	}
	return actions, min(max(left, retryTime), reportTime)
}

// rests is how long the call is not made again. It is not positive if it is due.
func (a Asked) rests(now time.Time) time.Duration {
	switch {
	case a.At.IsZero():
		return 0
	case a.Refusal != nil && !a.unknown():
		return a.At.Add(retryTime).Sub(now)
	}
	return a.At.Add(repeatTime).Sub(now)
}

// stop has the handler of the source end the migration, which writes why it has failed. That
// is written here if the handler knows of no migration, or does not report its end. Once
// memory was sent, it goes on with its guest if it is asked to since the target is over.
func stop(o Observed, why string) scheduler.Plan {
	byUser := o.Migration.DeletionTimestamp != nil
	abort := o.Calls.Abort
	begun := state(o).StartTimestamp != nil
	if c := poweredOff(o); c != nil {
		if left := c.FinishedAt.Add(reportTime).Sub(o.Now); left > 0 {
			return scheduler.Plan{Recheck: min(left, reportTime)} // the clock of the node may be ahead
		}
		return writeMoved(o)
	}
	if over(o) && hasMoved(o) {
		return writeMoved(o)
	}
	if (abort.done() || abort.unknown()) && !begun && !o.Now.Before(abort.At.Add(reportTime)) || begun && isOver(o) {
		return writeFailure(o, why)
	}
	var p scheduler.Plan
	if byUser {
		p = requestAbort(o)
	}
	switch left := abort.rests(o.Now); {
	case abort.Now:
	case left <= 0:
		p.Actions = append(p.Actions, scheduler.AbortMigration{Instance: o.VMI})
	default:
		p.Recheck = min(left, reportTime)
	}
	// What is at the target already is not aborted, and a handler that was restarted has to
	// know of the migration before. One of a target that was removed says what is left of it.
	if abort.Refusal != nil && (begun || !abort.unknown()) && targetUID(o) != "" && !over(o) && !abort.Now {
		calls, again := call(o)
		p.Actions = append(p.Actions, calls...)
		p.Recheck = soonest(p.Recheck, again)
	}
	if begun && over(o) {
		actions, again := keepOn(o)
		p.Actions = append(p.Actions, actions...)
		p.Recheck = soonest(p.Recheck, again)
	}
	return p
}

// isOver says that the handler of the source knows that the target is over, and has had the
// time to report the end of the migration.
func isOver(o Observed) bool {
	return over(o) && o.Calls.Over.done() && !o.Now.Before(o.Calls.Over.At.Add(reportTime))
}

// poweredOff is the end of a target that the guest has moved to and has powered off in, which the
// handler of that node reports, unless it is late or gone. Nil: that is not so.
func poweredOff(o Observed) *corev1.ContainerStateTerminated {
	if o.Target == nil {
		return nil
	}
	c := launched.Compute(o.Target)
	if c == nil || c.State.Terminated == nil || c.State.Terminated.ExitCode != 0 {
		return nil
	}
	return c.State.Terminated
}

// requestAbort writes, in the VMI and in the migration, that the migration is to end.
func requestAbort(o Observed) scheduler.Plan {
	p := write(o, func(s *vmi.VirtualMachineInstanceMigrationStatus, now metav1.Time) {
		s.SetCondition(abortRequested, now)
	})
	if state(o).AbortRequested {
		return p
	}
	to := o.VMI.DeepCopy()
	to.Status.MigrationState.AbortRequested = true
	p.Actions = append(p.Actions, scheduler.WriteInstance{From: o.VMI, To: to},
		say(o, false, SuccessfulAbortMigration, fmt.Sprintf("Migration %s is being aborted", o.Migration.Name)))
	return p
}

// writeFailure writes into the VMI that the migration has failed. What the handler has
// written stays.
func writeFailure(o Observed, why string) scheduler.Plan {
	to, now := o.VMI.DeepCopy(), metav1.NewTime(o.Now)
	s := to.Status.MigrationState
	s.Failed, s.Completed = true, true
	if s.StartTimestamp == nil {
		s.StartTimestamp = &now
	}
	if s.EndTimestamp == nil {
		s.EndTimestamp = &now
	}
	if s.FailureReason == "" {
		s.FailureReason = why
	}
	if o.Migration.DeletionTimestamp != nil {
		s.AbortRequested, s.AbortStatus = true, vmi.MigrationAbortSucceeded
	}
	after := o
	after.VMI = to
	return scheduler.Plan{Actions: slices.Concat([]scheduler.Action{
		scheduler.WriteInstance{From: o.VMI, To: to},
		say(o, true, FailedMigration, fmt.Sprintf("The migration to node %s has failed: %s", s.TargetNode, s.FailureReason)),
	}, fail(after, s.FailureReason).Actions)}
}

// writeMoved writes into the VMI that it has moved, as the handler of the target would have done
// that did not come to it before its launcher ended. The VMI ends with the target then, and its
// state is there.
func writeMoved(o Observed) scheduler.Plan {
	to, now := o.VMI.DeepCopy(), metav1.NewTime(o.Now)
	s := to.Status.MigrationState
	s.Completed, s.EndTimestamp = true, &now
	if s.StartTimestamp == nil { // the handler of the source was late too
		s.StartTimestamp = &now
	}
	to.Status.NodeName = s.TargetNode
	to.Status.Evacuate("", now)
	return scheduler.Plan{Actions: []scheduler.Action{scheduler.WriteInstance{From: o.VMI, To: to}}}
}

// soonest is the shorter of two times that are not 0.
func soonest(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}
