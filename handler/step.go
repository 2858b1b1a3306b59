package handler

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// Step is what the handler of the source does next for a migration.
type Step string

// The steps of a migration.
const (
	// StepWait waits for the launcher, which does not answer or is about to end.
	StepWait Step = "wait"
	// StepBegin asks the own launcher for its domain.
	StepBegin Step = "begin"
	// StepPrepare makes the launcher of the target wait for the domain.
	StepPrepare Step = "prepare"
	// StepPerform has the own launcher send the domain, or say how that ended.
	StepPerform Step = "perform"
	// StepFinish asks the launcher of the target for the outcome.
	StepFinish Step = "finish"
	// StepConfirm sends the own launcher the outcome.
	StepConfirm Step = "confirm"
	// StepAbort ends the sending.
	StepAbort Step = "abort"
	// StepDismiss has the launcher of the target wait for the guest no more.
	StepDismiss Step = "dismiss"
	// StepDone is none: the migration has ended for the source.
	StepDone Step = "done"
)

// Moving is what the handler of the source knows of a migration that it carries out. A
// handler that was restarted knows the State alone.
type Moving struct {
	// UID is that of the migration.
	UID types.UID
	// State is that of the own launcher now. Nil: it does not answer.
	State *protocol.State
	// Begun, Prepared and Performed say that this handler has the answers of these steps.
	Begun, Prepared, Performed bool
	// GivenUp says that the migration is to end: it was aborted, or a step has failed for good.
	GivenUp bool
	// Asked says that the target was asked for something, and Dismissed that it waits for the
	// guest no more, or does not answer to that.
	Asked, Dismissed bool
	// Moved is whether the guest runs at the target. Nil: that is not known. Only the target,
	// or virt-controller, says so.
	Moved *bool
	// Held says that a guest which has not moved is not to run on yet.
	Held bool
	// Confirmed says that the own launcher has taken the outcome.
	Confirmed bool
}

// Next returns the next step of a migration. The situations, by the stage of the own launcher:
//
//	stage        known                       step
//	none         -                           begin
//	none         given up                    dismiss the target, if it was asked
//	Begins       nothing, after a restart    begin again, which gives the same answer
//	Begins       the domain                  prepare
//	Begins       the target waits            perform
//	Begins       given up                    abort
//	Sends        -                           perform, which gives the answer of the one before
//	Sends        given up                    abort
//	Sent         nothing, after a restart    perform, for the same reason
//	Sent         -                           finish; nothing is given up any more
//	Sent         the outcome                 confirm
//	Sent         not moved, but held         wait
//	Stays        -                           dismiss the target
//	ended        -                           done
//	not known,   everything is sent          finish: the guest can run there alone
//	  or ended
//
// An answer of perform counts before the launcher reports Sent.
func Next(m Moving) Step {
	gone := m.State == nil || m.State.Phase == protocol.Ended
	switch {
	case gone && m.Performed && m.Moved == nil:
		return StepFinish
	case m.State == nil:
		return StepWait
	case gone:
		return StepDone
	}
	switch at := stageOf(m.State, m.UID); at {
	case protocol.MigrationStays:
		return dismiss(m)
	case "", protocol.MigrationBegins, protocol.MigrationSends, protocol.MigrationSent:
		if at == protocol.MigrationSent || m.Performed && at != "" {
			return conclude(m)
		}
		return advance(m, at)
	default: // those of a target
		return StepDone
	}
}

// conclude is the step after everything is at the target.
func conclude(m Moving) Step {
	switch {
	case m.Confirmed:
		return StepWait // its state follows
	case m.Moved != nil && m.Held && !*m.Moved:
		return StepWait
	case m.Moved != nil:
		return StepConfirm
	case !m.Performed:
		return StepPerform
	}
	return StepFinish
}

// advance is the step before that.
func advance(m Moving, at protocol.MigrationStage) Step {
	switch {
	case m.GivenUp && at == "":
		return dismiss(m)
	case m.GivenUp:
		return StepAbort
	case at == protocol.MigrationSends:
		return StepPerform
	case !m.Begun:
		return StepBegin
	case !m.Prepared:
		return StepPrepare
	}
	return StepPerform
}

func dismiss(m Moving) Step {
	if m.Dismissed || !m.Asked {
		return StepDone
	}
	return StepDismiss
}

// stageOf is where the migration stands for a launcher. Empty: it takes no part in it.
func stageOf(s *protocol.State, uid types.UID) protocol.MigrationStage {
	if s.Migration == nil || s.Migration.UID != uid {
		return ""
	}
	return s.Migration.Stage
}

// Retryable says that a step that was refused for the reason may succeed when it is repeated.
// A target whose handler was restarted knows nothing of a migration until virt-controller has
// repeated its call.
func (s Step) Retryable(f vmi.Finding) bool {
	switch f.Reason {
	case protocol.ReasonUnavailable, protocol.ReasonBusy, protocol.ReasonNotFound, protocol.ReasonStale:
		return s != StepBegin || f.Reason != protocol.ReasonNotFound
	}
	return false
}
