package replicaset

import (
	"strconv"
	"time"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// FailuresAnnotation is how many VMIs in a row ended without ever running before this
// one, in its place of the set. It survives the process, and is not on a VMI whose
// predecessor ran.
const FailuresAnnotation = "podvisor.io/start-failures"

// failures is the number of failed starts in a row with this one, which has ended. It
// is 0 if the guest ran.
func failures(v *vmi.VirtualMachineInstance) int {
	for _, t := range v.Status.PhaseTransitionTimestamps {
		if t.Phase == vmi.Running {
			return 0
		}
	}
	n, err := strconv.Atoi(v.Annotations[FailuresAnnotation])
	if err != nil || n < 0 {
		n = 0
	}
	return n + 1
}

// heldFor is how long a VMI that has ended stays before it is replaced. 0: it does
// not.
func heldFor(v *vmi.VirtualMachineInstance, now time.Time) time.Duration {
	n := failures(v)
	if n == 0 {
		return 0
	}
	return max(0, endedAt(v).Add(scheduler.BackOff(n, 0)).Sub(now))
}

// endedAt is when the VMI's phase became its last. Zero: it is not known.
func endedAt(v *vmi.VirtualMachineInstance) time.Time {
	for _, t := range v.Status.PhaseTransitionTimestamps {
		if t.Phase == v.Status.Phase {
			return t.PhaseTransitionTimestamp.Time
		}
	}
	return time.Time{}
}
