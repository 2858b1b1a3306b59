package handler

import (
	"time"

	"github.com/podvisor/podvisor/vmi"
)

// Plan is what is to be done: the actions in their order, then the status,
// then, if the status was written, the events.
type Plan struct {
	Actions []Action
	// Status is what the machine's status shall be. Nil: nobody's business, or
	// not ours.
	Status *vmi.VirtualMachineInstanceStatus
	// Events belong to the change of the status. Where it does not change there
	// are none.
	Events []Event
	// Recheck asks for another decision after this time, whether or not
	// something happens. 0: not needed.
	Recheck time.Duration
}

// Action is one thing to do.
type Action interface{ action() }

// Connect looks for the launcher in the pod and keeps a connection to it.
type Connect struct{ PodUID string }

// Disconnect gives up what Connect made.
type Disconnect struct{}

// Plumb makes the machine's network in the pod.
type Plumb struct{}

// Put tells the launcher what is wanted.
type Put struct{ Wish }

// Tell emits an event that goes with an action, not with a change of the
// status. It follows its action and is not reached if that fails.
type Tell struct{ Event }

func (Connect) action()    {}
func (Disconnect) action() {}
func (Plumb) action()      {}
func (Put) action()        {}
func (Tell) action()       {}

// Event is a line for the people who watch a machine.
type Event struct {
	// Warning says that something went wrong.
	Warning         bool
	Reason, Message string
}

// The reasons of events.
const (
	EventStarted      = "Started"
	EventShuttingDown = "ShuttingDown"
	EventStopped      = "Stopped"
	EventDeleted      = "Deleted"
	EventSyncFailed   = "SyncFailed"
)
