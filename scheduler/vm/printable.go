package vm

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

// printable is the VM's state in one word: the first that fits.
func printable(o Observed, n next) vmi.PrintableStatus {
	for _, p := range printables {
		if p.fits(o, n) {
			return p.status
		}
	}
	return vmi.StatusUnknown
}

// printables are the states, the most telling first.
var printables = []struct {
	status vmi.PrintableStatus
	fits   func(Observed, next) bool
}{
	{vmi.StatusTerminating, func(o Observed, _ next) bool { return o.VM.DeletionTimestamp != nil }},
	{vmi.StatusStopping, stopping},
	{vmi.StatusMigrating, func(o Observed, _ next) bool { return o.state() == alive && migrates(o.own()) }},
	{vmi.StatusPaused, func(o Observed, _ next) bool {
		return o.state() == alive && isTrue(o.own().Status.Condition(vmi.ConditionPaused))
	}},
	{vmi.StatusRunning, func(o Observed, _ next) bool { return o.state() == alive && o.own().Status.Phase == vmi.PhaseRunning }},
	{vmi.StatusPVCNotFound, missingClaim},
	{vmi.StatusDataVolumeError, dataVolumeFailed},
	{vmi.StatusUnschedulable, because(vmi.ConditionPodScheduled, corev1.PodReasonUnschedulable)},
	{vmi.StatusProvisioning, func(o Observed, n next) bool {
		return provisioning(o, n) || startingUp(o) && isTrue(o.own().Status.Condition(vmi.ConditionProvisioning))
	}},
	{vmi.StatusWaitingForVolumeBinding, unboundClaim},
	{vmi.StatusErrImagePull, because(vmi.ConditionSynchronized, "ErrImagePull")},
	{vmi.StatusImagePullBackOff, because(vmi.ConditionSynchronized, "ImagePullBackOff")},
	{vmi.StatusStarting, func(o Observed, n next) bool { return n.made || startingUp(o) }},
	{vmi.StatusCrashLoopBackOff, func(o Observed, n next) bool { return waits(o, n.failure) > 0 && o.state() != alive }},
	{vmi.StatusStopped, func(o Observed, _ next) bool { return o.state() != alive }},
}

// migrates says that the guest is sent to another node, or was, and that it is not known yet whether
// it runs there.
func migrates(v *vmi.VirtualMachineInstance) bool {
	m := v.Status.MigrationState
	return m != nil && m.StartTimestamp != nil && m.EndTimestamp == nil
}

// stopping says that the VMI is deleted, or will be at once.
func stopping(o Observed, n next) bool {
	v := o.own()
	return v != nil && (n.stops || v.DeletionTimestamp != nil)
}

// startingUp says that the VMI is on its way to run.
func startingUp(o Observed) bool {
	if o.state() != alive {
		return false
	}
	switch o.own().Status.Phase {
	case vmi.PhaseUnset, vmi.PhasePending, vmi.PhaseScheduling, vmi.PhaseScheduled:
		return true
	}
	return false
}

// because says that the VMI does not start, and that this condition has this reason.
func because(t vmi.ConditionType, reason string) func(Observed, next) bool {
	return func(o Observed, _ next) bool {
		if !startingUp(o) {
			return false
		}
		c := o.own().Status.Condition(t)
		return c != nil && c.Status == corev1.ConditionFalse && c.Reason == reason
	}
}

// missingClaim says that a claim of the VM that starts does not exist.
func missingClaim(o Observed, n next) bool {
	return anyClaim(o, n, func(c *corev1.PersistentVolumeClaim) bool { return c == nil })
}

// unboundClaim says that a claim of the VM that starts has no volume yet.
func unboundClaim(o Observed, n next) bool {
	return anyClaim(o, n, func(c *corev1.PersistentVolumeClaim) bool { return c != nil && c.Status.Phase == corev1.ClaimPending })
}

func anyClaim(o Observed, n next, is func(*corev1.PersistentVolumeClaim) bool) bool {
	if !n.starts && !startingUp(o) {
		return false
	}
	for name, c := range o.Claims {
		if (startingUp(o) || !provided(o, name)) && is(c) {
			return true
		}
	}
	return false
}
