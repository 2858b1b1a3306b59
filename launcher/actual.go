package launcher

import (
	"time"

	"github.com/podvisor/podvisor/launcher/protocol"
)

// Actual is everything that is known of a domain at one moment.
type Actual struct {
	// Now is the moment.
	Now time.Time
	// Domain is where the domain is in its life.
	Domain Domain
	// Observed is what was observed of the domain and its guest, as the handler reads it.
	// Nothing is decided about it.
	Observed protocol.State
	// Pause is why the guest is paused, or was before it was resumed for a trial.
	Pause protocol.Pause
	// Stopped says that a signal has stopped QEMU: its guest stands still, and nothing can be
	// asked of it.
	Stopped bool
	// PausedAt is when the guest was paused last.
	PausedAt time.Time
	// ResumedAt is when the launcher resumed the guest last by itself. Zero: it
	// did not, or the guest was unpaused by a call since.
	ResumedAt time.Time
	// Resumes is the [Resume.Attempt] of that.
	Resumes int
	// Turning says that a Suspend or Resume is being executed.
	Turning bool
	// Boot is what is known of the guest's boot.
	Boot Boot
	// Output is what is known of the guest's output.
	Output Output
	// Devices are those of the domain.
	Devices []Device
	// LostFilesystems are the file systems whose servers have ended, by their names.
	LostFilesystems []string
	// Operations is what became of the operations on the domain.
	Operations Operations
	// Session is the session with the libvirt daemon.
	Session Session
	// Fault is why the last start failed. Nil: none has.
	Fault error
	// RetryAt is when the next start may be tried.
	RetryAt time.Time
	// AskedAt is when the guest was last asked to power off. Zero: never.
	AskedAt time.Time
	// KilledAt is when the domain was last destroyed by the launcher. Zero: never.
	KilledAt time.Time
	// Exit is how the domain ended, if it is gone.
	Exit Exit
	// Moving is the migration that is under way. Zero: none is.
	Moving protocol.Migration
}

// sends says that the guest is sent to another launcher.
func (a Actual) sends() bool { return a.Moving.Stage == protocol.MigrationSends }

// sent says that the guest may run in another launcher.
func (a Actual) sent() bool {
	return a.Moving.Stage == protocol.MigrationSent && (a.Domain.exists() || a.Domain == Gone)
}

// moves says that the guest is about to move, or moves.
func (a Actual) moves() bool {
	return a.Moving.Stage == protocol.MigrationBegins || a.sends() || a.sent()
}

// Domain is where a domain is in its life.
type Domain string

// The places of a domain.
const (
	// Absent: it was not started, or the start failed and left nothing.
	Absent Domain = ""
	// Starting: it is being prepared and created.
	Starting Domain = "starting"
	// Running: the guest runs.
	Running Domain = "running"
	// Paused: QEMU runs and the guest does not.
	Paused Domain = "paused"
	// Gone: it ran and has ended.
	Gone Domain = "gone"
)

// exists says that there is a domain with a QEMU.
func (d Domain) exists() bool { return d == Running || d == Paused }

// Session is the session with the libvirt daemon.
type Session struct {
	// LostAt is since when there is none. Zero: there is one.
	LostAt time.Time
	// Message is what is known of the cause, for people. It is the same as long as
	// the cause is.
	Message string
}

// Exit is how a domain ended.
type Exit struct {
	// Cause is what ended it.
	Cause Cause
	// Message says more, for people.
	Message string
}

// Cause is what ended a domain.
type Cause string

// The causes.
const (
	// PoweredOff: the guest powered off.
	PoweredOff Cause = "powered off"
	// Destroyed: the domain was destroyed from outside.
	Destroyed Cause = "destroyed"
	// MovedAway: the guest runs in another launcher.
	MovedAway Cause = "moved away"
	// Crashed: QEMU or the guest crashed.
	Crashed Cause = "crashed"
)
