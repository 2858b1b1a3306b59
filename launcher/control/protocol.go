package control

import (
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

// Desired is everything that the handler wants of a launcher. It is put as a
// whole, any number of times; putting what is wanted already changes nothing.
type Desired struct {
	// Instance is the machine, with defaults applied. It must be the launcher's
	// own.
	Instance *vmi.VirtualMachineInstance `json:"instance"`
	// Interfaces are the machine's interfaces as they were plumbed into the
	// pod, one for each interface in the spec.
	Interfaces []network.Attachment `json:"interfaces,omitempty"`
	// Settings are the cluster's for every launcher. What they say about the
	// machine counts when it is started.
	Settings config.Launcher `json:"settings,omitzero"`
	// Stop asks for the end of the machine. Nil: it shall run.
	Stop *Stop `json:"stop,omitempty"`
}

// Stop asks for the end of a machine.
type Stop struct {
	// GracePeriodSeconds is how long the guest may take to power off, counted
	// from the first Desired with a Stop. A later, shorter one counts.
	GracePeriodSeconds int64 `json:"gracePeriodSeconds"`
}

// Phase is where a domain is in its life.
type Phase string

// The phases of a domain, in order.
const (
	// Waiting: nothing is wanted yet.
	Waiting Phase = "Waiting"
	// Starting: the domain is being prepared.
	Starting Phase = "Starting"
	// Running: the guest runs.
	Running Phase = "Running"
	// Paused: the guest is paused.
	Paused Phase = "Paused"
	// Stopping: the guest was asked to power off.
	Stopping Phase = "Stopping"
	// Ended: the domain is gone and does not come back. End says how.
	Ended Phase = "Ended"
)

// State is everything that a launcher knows of its machine.
type State struct {
	Phase Phase `json:"phase"`
	// Problem is why the domain does not start at the moment, if it is being
	// tried again. Nil: there is none.
	Problem *Problem `json:"problem,omitempty"`
	// End says how the domain ended. Nil unless Phase is Ended.
	End *End `json:"end,omitempty"`
	// Emulated says that the guest runs without hardware virtualization.
	Emulated bool `json:"emulated,omitempty"`
	// Machine is the machine type that the guest runs on.
	Machine string `json:"machine,omitempty"`
	// Disks are the machine's disks.
	Disks []Disk `json:"disks,omitempty"`
	// Agent is the agent in the guest. Nil: there is none, or it is not known.
	Agent *Agent `json:"agent,omitempty"`
}

// Agent is QEMU's agent in a guest, which has opened its channel.
type Agent struct {
	// Version is what it says it is, one short word. Empty: it did not say.
	Version string `json:"version,omitempty"`
}

// Problem is a reason in one word and a message for people.
type Problem struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// End says how a domain ended.
type End struct {
	// Reason is the kind of end.
	Reason EndReason `json:"reason"`
	// Message says more, for people.
	Message string `json:"message,omitempty"`
}

// EndReason is how a domain ended.
type EndReason string

// The ends of a domain.
const (
	// Shutdown: the guest powered off, or was switched off without a grace period
	// to power off in.
	Shutdown EndReason = "Shutdown"
	// Killed: the grace period was over before the guest had powered off.
	Killed EndReason = "GracePeriodExceeded"
	// Crashed: QEMU or the guest crashed.
	Crashed EndReason = "Crashed"
	// NeverStarted: the machine cannot be made as its spec says.
	NeverStarted EndReason = "CannotStart"
	// Cancelled: a stop was asked for before the domain was started.
	Cancelled EndReason = "Cancelled"
)

// Succeeded says that the end is a good one: the machine did as it was told.
func (e EndReason) Succeeded() bool { return e == Shutdown || e == Cancelled }

// Disk is a disk of a running domain.
type Disk struct {
	// Name is the volume's name in the spec.
	Name string `json:"name"`
	// Target is the disk's name on its bus, for example vda.
	Target string `json:"target"`
	// SizeBytes is the size that the guest sees.
	SizeBytes int64 `json:"sizeBytes,omitempty"`
}
