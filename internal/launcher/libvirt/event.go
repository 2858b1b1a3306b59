package libvirt

import (
	golibvirt "github.com/digitalocean/go-libvirt"

	"github.com/podvisor/podvisor/launcher/protocol"
)

// Event is something that happened to a domain.
type Event struct {
	// Domain is the domain's name.
	Domain string
	// Kind is what happened.
	Kind EventKind
	// Pause is the cause of a pause. Empty unless Kind is Suspended.
	Pause protocol.PauseCause
	// Device is the alias of the device that IOError, DeviceRemoved or DeviceKept is
	// about.
	Device string
	// NoSpace says of an IOError that what the disk is on is full.
	NoSpace bool
	// Action is what QEMU does because of an IOError or a WatchdogExpired.
	Action Action
	// Path is the file or device that is the disk of a BlockJobChanged.
	Path string
	// Job is what has become of the job of a BlockJobChanged.
	Job JobState
	// MemoryBytes is what a BalloonChanged leaves to the guest.
	MemoryBytes int64
}

// EventKind is what happened to a domain.
type EventKind string

// The kinds of events.
const (
	// Started: QEMU runs.
	Started EventKind = "started"
	// Suspended: the guest was paused.
	Suspended EventKind = "suspended"
	// Resumed: the guest runs again.
	Resumed EventKind = "resumed"
	// Interrupted: QEMU got a signal to end.
	Interrupted EventKind = "interrupted"
	// ShutDown: the guest has powered off, and QEMU is to end. The guest may be started anew
	// instead, which is a Resumed.
	ShutDown EventKind = "shut down"
	// PoweredOff: QEMU ended after the guest powered off, or after it was
	// interrupted.
	PoweredOff EventKind = "powered off"
	// Destroyed: QEMU ended because the domain was destroyed.
	Destroyed EventKind = "destroyed"
	// MovedAway: QEMU ended because the guest has moved to another daemon.
	MovedAway EventKind = "moved away"
	// Failed: QEMU ended by itself.
	Failed EventKind = "failed"
	// Rebooted: the guest rebooted, or was reset.
	Rebooted EventKind = "rebooted"
	// Panicked: the panic device reports that the kernel of the guest crashed.
	Panicked EventKind = "panicked"
	// AgentChanged: an agent in the guest opened its channel, or closed it.
	AgentChanged EventKind = "agent changed"
	// IOError: a request of the guest to a disk failed. A Suspended follows or has
	// come if the Action is a pause.
	IOError EventKind = "I/O error"
	// WatchdogExpired: the guest did not reset its watchdog in time.
	WatchdogExpired EventKind = "watchdog expired"
	// DeviceRemoved: the guest has released a device that was detached.
	DeviceRemoved EventKind = "device removed"
	// DeviceKept: the guest refused to release a device that was to be detached.
	DeviceKept EventKind = "device kept"
	// BlockJobChanged: a block job is ready, or has ended.
	BlockJobChanged EventKind = "block job changed"
	// BalloonChanged: the memory that the balloon leaves to the guest is another.
	BalloonChanged EventKind = "balloon changed"
)

// Action is what QEMU does by itself because of something in the guest.
type Action string

// The actions. One that is not known here is empty.
const (
	// ActionNone: the guest goes on, without knowing of it.
	ActionNone Action = "none"
	// ActionPause: the guest is paused.
	ActionPause Action = "pause"
	// ActionReport: the guest gets the error.
	ActionReport Action = "report"
	// ActionReset: the guest is reset.
	ActionReset Action = "reset"
	// ActionPowerOff: QEMU ends at once.
	ActionPowerOff Action = "poweroff"
	// ActionShutdown: the power button is pressed.
	ActionShutdown Action = "shutdown"
	// ActionInjectNMI: the guest gets a non-maskable interrupt.
	ActionInjectNMI Action = "inject-nmi"
)

// agentEvent translates libvirt's reason. Empty: of no interest, such as that a
// domain which was just started has no agent.
func agentEvent(reason golibvirt.ConnectDomainEventAgentLifecycleReason) EventKind {
	if reason == golibvirt.ConnectDomainEventAgentLifecycleReasonChannel {
		return AgentChanged
	}
	return ""
}

// lifecycle translates libvirt's pair of numbers. Without a Kind: of no interest.
func lifecycle(event golibvirt.DomainEventType, detail int32) Event {
	e := Event{Kind: eventKind(event, detail)}
	if e.Kind == Suspended {
		e.Pause = pauseCause(suspendDetails, golibvirt.DomainEventSuspendedDetailType(detail))
	}
	return e
}

func eventKind(event golibvirt.DomainEventType, detail int32) EventKind {
	switch event {
	case golibvirt.DomainEventStarted:
		return Started
	case golibvirt.DomainEventSuspended:
		return Suspended
	case golibvirt.DomainEventResumed:
		return Resumed
	case golibvirt.DomainEventShutdown:
		switch golibvirt.DomainEventShutdownDetailType(detail) {
		case golibvirt.DomainEventShutdownGuest:
			return ShutDown
		case golibvirt.DomainEventShutdownHost:
			return Interrupted
		default:
			return ""
		}
	case golibvirt.DomainEventStopped:
		switch golibvirt.DomainEventStoppedDetailType(detail) {
		case golibvirt.DomainEventStoppedShutdown:
			return PoweredOff
		case golibvirt.DomainEventStoppedDestroyed:
			return Destroyed
		case golibvirt.DomainEventStoppedMigrated:
			return MovedAway
		default:
			return Failed
		}
	case golibvirt.DomainEventCrashed:
		return Panicked // the end of the domain, if it is one, is an event of its own
	default:
		return ""
	}
}
