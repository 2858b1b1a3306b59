package handler

import (
	"time"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

// Observed is everything that a decision rests on.
type Observed struct {
	// Instance is the machine as the API has it, with defaults applied. Nil: it
	// is gone.
	Instance *vmi.VirtualMachineInstance
	// Link is what connects this handler to the machine's launcher. Nil: this
	// handler has not begun to connect.
	Link *Link
	// Settings are the cluster's for launchers.
	Settings config.Launcher
	// Agents are the versions of the guest's agent that the cluster supports.
	Agents config.AgentVersions
	// Now is the time.
	Now time.Time
}

// Link is the connection to a launcher and what came and went over it. All but
// PodUID, Fault and Since is lost when the connection breaks.
type Link struct {
	// PodUID is the pod that the launcher is looked for in.
	PodUID string
	// Guest is what the launcher told last. Nil: nothing yet, or the connection
	// is down.
	Guest *Guest
	// Plumbing is the machine's network. Nil: not made over this connection.
	Plumbing *Plumbing
	// Put is what the launcher was told last. Nil: nothing over this connection.
	Put *Wish
	// Fault is what goes wrong with the connection, the network or what was put.
	// Nil: nothing.
	Fault *Finding
	// Since is when that began.
	Since time.Time
}

// Guest is a launcher's report of its machine.
type Guest struct {
	Phase GuestPhase
	// Problem is why the guest does not start, if it is tried again.
	Problem *Finding
	// End is how it ended. Nil unless Phase is GuestEnded.
	End *End
	// Emulated says that it runs without hardware virtualization.
	Emulated bool
	// Machine is its machine type.
	Machine string
	// Disks are its disks.
	Disks []vmi.VolumeStatus
	// Agent is the agent in it. Nil: there is none, or it is not known.
	Agent *Agent
}

// Agent is the agent in a guest.
type Agent struct {
	// Version is its version. Empty: it did not say.
	Version string
}

// GuestPhase is where a guest is in its life.
type GuestPhase string

// The phases of a guest, in order.
const (
	GuestStarting GuestPhase = "Starting" // or waiting for what is wanted
	GuestRunning  GuestPhase = "Running"
	GuestPaused   GuestPhase = "Paused"
	GuestStopping GuestPhase = "Stopping" // it was asked to power off
	GuestEnded    GuestPhase = "Ended"
)

// End is how a guest ended.
type End struct {
	Finding
	// Succeeded says that the guest powered off by itself or was asked to.
	Succeeded bool
}

// Finding is a reason in one word and a message for people.
type Finding struct{ Reason, Message string }

// Plumbing is a machine's network as it was made.
type Plumbing struct {
	// Interfaces are the machine's interfaces as its status shows them.
	Interfaces []vmi.InterfaceStatus
}

// Wish is what a launcher is told.
type Wish struct {
	// Stop asks for the end of the machine.
	Stop bool
	// Grace is the time that the guest has for it.
	Grace time.Duration
	// Settings are the cluster's for launchers.
	Settings config.Launcher
}
