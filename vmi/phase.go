package vmi

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Phase is where a machine is in its life.
type Phase string

// The phases, in order. Succeeded and Failed are final.
const (
	// PhaseUnset is the phase of a machine that no controller has seen yet.
	PhaseUnset Phase = ""
	// Pending: the machine has no pod yet.
	Pending Phase = "Pending"
	// Scheduling: the pod exists and waits for a node or for its start.
	Scheduling Phase = "Scheduling"
	// Scheduled: the pod runs on its node and the node's handler takes over.
	Scheduled Phase = "Scheduled"
	// Running: the guest runs, or is paused.
	Running Phase = "Running"
	// Succeeded: the guest powered off.
	Succeeded Phase = "Succeeded"
	// Failed: the machine could not start, crashed or was switched off because
	// the guest did not power off in time.
	Failed Phase = "Failed"
	// Unknown: the machine's node does not answer.
	Unknown Phase = "Unknown"
)

// ReasonNodeUnresponsive is the status reason of a machine that failed because
// its node does not answer.
const ReasonNodeUnresponsive = "NodeUnresponsive"

// Final says that the phase is the machine's last.
func (p Phase) Final() bool { return p == Succeeded || p == Failed }

// PhaseTransitionTimestamp says when a phase began.
type PhaseTransitionTimestamp struct {
	// Phase is the phase.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// PhaseTransitionTimestamp is when it began.
	// +optional
	PhaseTransitionTimestamp metav1.Time `json:"phaseTransitionTimestamp,omitempty"`
}
