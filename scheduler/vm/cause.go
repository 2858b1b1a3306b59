package vm

import "time"

// causeDelay is how long the cause of an end may take to become known: the launcher has half
// a minute to end after its guest, and the kubelet reports its end after that.
const causeDelay = 45 * time.Second

// causeSettles is how long the cause of the end of the VM's VMI may still become known. The
// kubelet says only with the end of a pod that it ended it since a liveness probe failed, and
// the VMI ends before its pod. A VMI that is deleted before keeps the reason that it has.
// 0: the VMI has not ended, its cause is known, or it had its time.
func causeSettles(o Observed) time.Duration {
	v := o.own()
	if v == nil || v.DeletionTimestamp != nil || v.Spec.LivenessProbe == nil {
		return 0
	}
	if _, unknown := v.Status.DisruptionUnknown(); !unknown {
		return 0
	}
	left := v.Status.PhaseSince(v.Status.Phase).Add(causeDelay).Sub(o.Now)
	if left >= 2*causeDelay { // the clock of the node is another one
		return 0
	}
	return max(0, left)
}
