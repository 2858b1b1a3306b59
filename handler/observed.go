package handler

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

// Observed is everything that a decision rests on.
type Observed struct {
	// Instance is the VMI as the API has it, with defaults applied. Nil: it does
	// not exist.
	Instance *vmi.VirtualMachineInstance
	// Node is the name of this node.
	Node string
	// Pod is the pod that the decision is about, with its role: one of [Pods]. The zero
	// value: the pod of the Session is none of the VMI's on this node.
	Pod Pod
	// Session is the connection to the launcher in the Pod. Nil: there is none.
	Session *Session
	// NothingLeft says that the kubelet has ended the containers of the Pod and removed its
	// folder, if virt-controller has written that the pod was removed. False: its processes may
	// run.
	NothingLeft bool
	// Beside is why the guest must not start beside another one on the node. It matters until the
	// VMI was put. Nil: nothing is in the way.
	Beside *vmi.Finding
	// Settings are the cluster's for launchers.
	Settings config.Launcher
	// Bindings are how interfaces may be bound to the networks of their pod. Nil:
	// [network.Bindings].
	Bindings []network.Binding
	// Agents are the versions of the guest's agent that the cluster supports.
	Agents config.AgentVersions
	// Now is the time.
	Now time.Time
}

// Session is this handler's connection to one launcher, which is made again
// whenever it breaks, and what is known through it. State, Network and Put are
// lost when it breaks.
type Session struct {
	// Began is when the session was started.
	Began time.Time
	// State is what the launcher reported last, sanitized. Nil: it has not
	// answered yet, or the connection is broken.
	State *protocol.State
	// Network is the VMI's network in the pod. Nil: it was not bound in this
	// session.
	Network *Network
	// Put is the Desired that the launcher accepted last. Nil: none in this
	// session.
	Put *protocol.Desired
	// Generation is the highest one that the launcher reported or was sent.
	Generation int64
	// Over says that the VMI had failed when it was seen last, since its node was fenced.
	Over bool
	// HeldSince is since when the guest does not start because of [Observed].Beside, and Held
	// when that was last so. Zero: it is not so, and never was.
	HeldSince, Held time.Time
	// Move is what is known of a migration from this pod, or to it.
	Move Move
	// Sent is since when the launcher reports that everything of the guest is at the target of
	// a migration. Zero: it does not.
	Sent time.Time
	// Finding is what fails: the connection, the network or the last Put. Nil:
	// nothing is known to fail.
	Finding *vmi.Finding
	// Since is when Finding began. Without a State it is when the launcher
	// answered last, or Began if it never did.
	Since time.Time
}

// Move is what the handler of the source knows of a migration, besides what the launcher
// reports, or what it has sent to that of the target.
type Move struct {
	// UID is that of the migration. Empty: none was started.
	UID types.UID
	// Peer is the address and the port of the handler of the target.
	Peer string
	// Mode is how the memory was sent. Only the handler of the target has it from elsewhere than
	// from its launcher.
	Mode vmi.MigrationMode
	// Finding is why the handler gave the migration up. Nil: it did not.
	Finding *vmi.Finding
	// Ended says that the handler does nothing more for it.
	Ended bool
}

// Network is a VMI's network as it is bound in its pod.
type Network struct {
	// Interfaces are the VMI's interfaces for its status.
	Interfaces []vmi.InterfaceStatus
	// Attachments are the same interfaces as the launcher attaches them.
	Attachments []network.Attachment
}

// The reasons of a [Session]'s Finding, besides vmi.ReasonLauncherUnresponsive and
// vmi.ReasonLauncherUnsafe, of a VMI that failed without one, and of the condition
// GuestRebootLoop.
const (
	// ReasonNetworkFailed: the network cannot be bound in the pod.
	ReasonNetworkFailed = "NetworkFailed"
	// ReasonLauncherRefuses: the launcher refuses the Desired.
	ReasonLauncherRefuses = "LauncherRefuses"
	// ReasonStartTimeout: the launcher accepted the Desired and reports neither a
	// guest that runs nor a finding.
	ReasonStartTimeout = "StartTimeout"
	// ReasonClaimInUse: the guest of a VMI that is gone or has ended may still run on the node
	// and has the same claim. virt-controller has it of other VMIs.
	ReasonClaimInUse = "ClaimInUse"
	// ReasonMigrationOutcomeUnknown: everything of the guest is at the target of its migration,
	// which does not answer. It is the reason of the condition Paused.
	ReasonMigrationOutcomeUnknown = "MigrationOutcomeUnknown"
	// ReasonRebootsAgain: the guest reboots again and again.
	ReasonRebootsAgain = "RebootsAgainAndAgain"
)
