package vmi

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Phase is where a VMI is in its life cycle.
type Phase string

// The phases, in order. PhaseSucceeded and PhaseFailed are final.
const (
	// PhaseUnset is the phase of a VMI that no controller has processed yet.
	PhaseUnset Phase = ""
	// PhasePending: the VMI has no pod yet.
	PhasePending Phase = "Pending"
	// PhaseScheduling: the pod exists and waits for a node or for its start.
	PhaseScheduling Phase = "Scheduling"
	// PhaseScheduled: the pod runs on its node and the node's handler is responsible.
	PhaseScheduled Phase = "Scheduled"
	// PhaseRunning: the guest runs, or is paused.
	PhaseRunning Phase = "Running"
	// PhaseSucceeded: the guest powered off.
	PhaseSucceeded Phase = "Succeeded"
	// PhaseFailed: the VMI could not start, crashed or was switched off because the
	// guest did not power off in time.
	PhaseFailed Phase = "Failed"
	// PhaseUnknown: the VMI's node does not answer.
	PhaseUnknown Phase = "Unknown"
)

// ReasonNodeUnresponsive is the status reason of a VMI that failed because its
// node does not answer.
const ReasonNodeUnresponsive = "NodeUnresponsive"

// Final says that the phase is the VMI's last.
func (p Phase) Final() bool { return p == PhaseSucceeded || p == PhaseFailed }

// PhaseTransitionTimestamp says when a phase began.
type PhaseTransitionTimestamp struct {
	// Phase is the phase.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// PhaseTransitionTimestamp is when it began.
	// +optional
	PhaseTransitionTimestamp metav1.Time `json:"phaseTransitionTimestamp,omitempty"`
}
