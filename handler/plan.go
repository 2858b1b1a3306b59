package handler

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// Plan is what is to be done: the status, then, if it was written, the events,
// then the actions in their order until one fails. The status does not depend on
// the actions: it is about what is observed. The actions do not wait for the status
// either, unless it is final.
type Plan struct {
	Actions []Action
	// Status is what the VMI's status shall be. Nil: it is not written.
	Status *vmi.VirtualMachineInstanceStatus
	// Events belong to the change of the status. If it does not change they are
	// not emitted.
	Events []Event
	// Recheck asks for another decision after this time. 0: not before something
	// changes.
	Recheck time.Duration
}

// Action is one thing to do.
type Action interface{ action() }

// Connect starts a session with the launcher in the pod.
type Connect struct{ PodUID types.UID }

// Disconnect ends the session. The launcher is not affected, unless its guest is to be
// destroyed.
type Disconnect struct {
	// Destroy switches the guest off at once, if it takes several tries also after the end of
	// the session.
	Destroy bool
}

// Bind binds the VMI's network in the pod.
type Bind struct{}

// Put puts the Desired to the launcher.
type Put struct{ protocol.Desired }

// Emit emits an event that belongs to an action, not to a change of the status.
// It follows its action and is not reached if that fails.
type Emit struct{ Event }

func (Connect) action()    {}
func (Disconnect) action() {}
func (Bind) action()       {}
func (Put) action()        {}
func (Emit) action()       {}

// Event is an event of a VMI.
type Event struct {
	// Warning makes the event's type Warning. The zero value is Normal.
	Warning bool
	vmi.Finding
}

func normal(reason, message string) Event {
	return Event{Finding: vmi.Finding{Reason: reason, Message: message}}
}

func warning(reason, message string) Event {
	return Event{Warning: true, Finding: vmi.Finding{Reason: reason, Message: message}}
}

// The reasons of events.
const (
	EventStarted      = "Started"
	EventShuttingDown = "ShuttingDown"
	EventStopped      = "Stopped"
	EventDeleted      = "Deleted"
	EventSyncFailed   = "SyncFailed"
	EventIOError      = "IOerror"
	EventResumed      = "Resumed"
	EventRebooted     = "GuestRebooted"
	EventPanicked     = "GuestPanicked"
	EventNotBooted    = "GuestNotBooted"
	EventRebootLoop   = "GuestRebootLoop"
	EventMigrating    = "Migrating"
	EventMigrated     = "Migrated"

	EventCredentialsSynchronized = vmi.ReasonCredentialsSynchronized
	EventCredentialsFailed       = vmi.ReasonCredentialsFailed
)

// recheck asks for another decision after d, or earlier if that was asked for.
func (p *Plan) recheck(d time.Duration) {
	if d > 0 && (p.Recheck == 0 || d < p.Recheck) {
		p.Recheck = d
	}
}
