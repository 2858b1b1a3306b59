package vm

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// failures counts the failed starts in a row, each VMI once. It is nil if the last
// start was good, or if the run strategy is another one since.
func failures(o Observed) *vmi.StartFailure {
	before := o.VM.Status.StartFailure
	if o.VM.Status.RunStrategy != "" && renewed(o) {
		before = nil
	}
	v := o.own()
	switch {
	case v == nil:
		return before
	case v.Status.HasRun():
		return nil
	case !failedToStart(o, v) || before != nil && before.LastFailedVMIUID == v.UID:
		return before
	}
	n := 1
	if before != nil {
		n = before.ConsecutiveFailCount + 1
	}
	at := metav1.NewTime(o.Now.Add(scheduler.BackOff(n, o.Jitter)).Truncate(time.Second))
	return &vmi.StartFailure{ConsecutiveFailCount: n, LastFailedVMIUID: v.UID, RetryAfterTimestamp: &at}
}

// failedToStart says that the VMI ended without ever running, and was not
// deleted before.
func failedToStart(o Observed, v *vmi.VirtualMachineInstance) bool {
	switch o.VM.Spec.Strategy() {
	case vmi.RunAlways, vmi.RunRerunOnFailure, vmi.RunOnce:
		return v.Status.Phase.Final() && v.DeletionTimestamp == nil
	}
	return false
}

// waits is how long the next start is still put off. 0: not at all.
func waits(o Observed, f *vmi.StartFailure) time.Duration {
	if f == nil || f.RetryAfterTimestamp == nil {
		return 0
	}
	return max(0, f.RetryAfterTimestamp.Sub(o.Now))
}
