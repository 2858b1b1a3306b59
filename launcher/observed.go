package launcher

import "time"

// Observed is everything that is known of a domain at one moment.
type Observed struct {
	// Now is the moment.
	Now time.Time
	// Wanted says that the handler wants the domain to run.
	Wanted bool
	// StopBy is when the guest has to be off. Zero: nobody asked for its end.
	StopBy time.Time
	// Domain is where the domain is.
	Domain Domain
	// Fault is why the last start failed. Nil: none has.
	Fault error
	// RetryAt is when the next start may be tried.
	RetryAt time.Time
	// AskedAt is when the guest was last asked to power off. Zero: never.
	AskedAt time.Time
	// KilledAt is when the domain was last destroyed for being late. Zero: never.
	KilledAt time.Time
	// Exit is how the domain went, if it is gone.
	Exit Exit
}

// Domain is where a domain is in its life.
type Domain string

// The places of a domain.
const (
	// Absent: it was not started, or the start failed and left nothing.
	Absent Domain = ""
	// Starting: it is being prepared and created.
	Starting Domain = "starting"
	// Running: QEMU runs.
	Running Domain = "running"
	// Paused: QEMU runs and the guest does not.
	Paused Domain = "paused"
	// Gone: it ran and does no more.
	Gone Domain = "gone"
)

// Exit is how a domain went.
type Exit struct {
	// Cause is what made it go.
	Cause Cause
	// Message says more, for people.
	Message string
}

// Cause is what made a domain go.
type Cause string

// The causes.
const (
	// PoweredOff: the guest switched the machine off.
	PoweredOff Cause = "powered off"
	// Destroyed: the domain was destroyed from outside.
	Destroyed Cause = "destroyed"
	// Crashed: QEMU or the guest crashed.
	Crashed Cause = "crashed"
)
