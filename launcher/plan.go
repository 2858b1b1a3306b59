package launcher

import "time"

// Plan is what to do about a domain now.
type Plan struct {
	// Phase is what the handler is told.
	Phase Phase
	// Actions are to be done in order.
	Actions []Action
	// Recheck is after how long to decide again if nothing happens before. 0:
	// only when something happens.
	Recheck time.Duration
}

// Phase is what a handler is told of a domain. The words are those of the
// control protocol.
type Phase string

// The phases.
const (
	PhaseWaiting  Phase = "Waiting"
	PhaseStarting Phase = "Starting"
	PhaseRunning  Phase = "Running"
	PhasePaused   Phase = "Paused"
	PhaseStopping Phase = "Stopping"
	PhaseEnded    Phase = "Ended"
)

// Action is something to do about a domain: a [Start], [CancelStart],
// [RequestShutdown], [Destroy] or [Finish].
type Action interface{ action() }

// Start prepares and creates the domain.
type Start struct{}

// CancelStart breaks off a start. A domain that was created all the same stays.
type CancelStart struct{}

// RequestShutdown asks the guest to power off.
type RequestShutdown struct{}

// Destroy switches the machine off.
type Destroy struct{}

// Finish ends the launcher: the domain is gone and does not come back.
type Finish struct {
	// Reason is the kind of end, in the words of the control protocol.
	Reason Reason
	// Message says more, for people.
	Message string
}

func (Start) action()           {}
func (CancelStart) action()     {}
func (RequestShutdown) action() {}
func (Destroy) action()         {}
func (Finish) action()          {}

// Reason is the kind of a domain's end.
type Reason string

// The reasons.
const (
	// ReasonShutdown: the guest powered off, or was switched off without a grace
	// period to power off in.
	ReasonShutdown Reason = "Shutdown"
	// ReasonKilled: the grace period was over before the guest had powered off.
	ReasonKilled Reason = "GracePeriodExceeded"
	// ReasonCrashed: QEMU or the guest crashed.
	ReasonCrashed Reason = "Crashed"
	// ReasonNeverStarted: the machine cannot be made as its spec says.
	ReasonNeverStarted Reason = "CannotStart"
	// ReasonCancelled: a stop was asked for before the domain was started.
	ReasonCancelled Reason = "Cancelled"
)
