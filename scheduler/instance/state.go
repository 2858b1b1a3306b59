package instance

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
)

// The claims for the state of a VMI. A migration makes a second one, for its target. It may hold
// the state from when the guest is asked to run there: the launcher there notes that in the claim
// before, and takes it back before it says that the guest never ran there. So there may be two
// with the label, of which a start uses the last one. A launcher that does not find the note in it
// starts no guest, and the last one is deleted. When the guest runs, the others are.
//
//	VMI                     claim of the target       what is done
//	runs in the target      not labelled              labelled; the others are deleted
//	runs                    labelled                  the others are deleted
//	runs, migration failed  not labelled              deleted
//	ended, migration done   not labelled              labelled; the others are deleted
//	ended while it moved,   not labelled, and its     deleted
//	  or failed to          launcher ran no guest
//	ended while it moved,   not labelled              labelled, when the target has ended; the others stay
//	  or failed to
//	ended, no state in it   labelled, another too     deleted

// heldState is for a VMI whose active pod may run a guest.
func heldState(o Observed) []scheduler.Action {
	if len(o.State) == 0 {
		return nil
	}
	var out []scheduler.Action
	if s := o.VMI.Status.MigrationState; s != nil && s.Failed {
		out = withoutState(o.target())
	}
	held := o.stateNamed(launched.StateClaim(o.Pods.Active))
	if held == nil || o.VMI.Status.Phase != vmi.PhaseRunning {
		return out
	}
	return slices.Concat(out, labelState(o, held), o.otherState(held))
}

// leftState is for a VMI that has ended. Over says that no pod of it runs any more.
func leftState(o Observed, over bool) []scheduler.Action {
	if len(o.State) == 0 {
		return nil
	}
	last := o.startState()
	if o.VMI.Status.Reason == string(protocol.StateMissing) && len(o.otherState(last)) > 0 {
		return withoutState(last)
	}
	s, t := o.VMI.Status.MigrationState, o.target()
	switch {
	case s == nil || t == nil || t.DeletionTimestamp != nil:
		return nil
	case s.Completed && !s.Failed:
		return append(labelState(o, t), o.otherState(t)...)
	}
	i := slices.IndexFunc(others(o), func(p *corev1.Pod) bool { return p.Name == s.TargetPod })
	switch {
	case i >= 0 && launched.Ended(others(o)[i]) && endOf(others(o)[i]).Reason == string(protocol.Cancelled):
		return withoutState(t)
	case i >= 0 && !launched.Ended(others(o)[i]) && !over:
		return nil
	}
	return labelState(o, t)
}

// target is the claim of the target of the VMI's migration, if it has no label yet. Nil: there is
// none.
func (o Observed) target() *corev1.PersistentVolumeClaim {
	s := o.VMI.Status.MigrationState
	if s == nil {
		return nil
	}
	c := o.stateNamed(s.TargetPersistentStatePVCName)
	if c == nil || c.Labels[vmi.StateLabel] != "" || c.Labels[vmi.MigrationNameLabel] == "" {
		return nil
	}
	return c
}

// stateNamed is the claim of this name, if it is one for the state of the VMI. Nil: there is none.
func (o Observed) stateNamed(name string) *corev1.PersistentVolumeClaim {
	for _, c := range o.State {
		if c.Name == name && o.ownsState(c) {
			return c
		}
	}
	return nil
}

// startState is the claim that a start of the VMI uses. Nil: it is made by the start.
func (o Observed) startState() *corev1.PersistentVolumeClaim {
	return launched.State(pod.StateClaim(o.VMI, o.Config), o.State)
}

// ownsState says that the claim was made for the state of the VMI.
func (o Observed) ownsState(c *corev1.PersistentVolumeClaim) bool {
	owner := pod.StateClaim(o.VMI, o.Config).OwnerReferences[0].UID
	return slices.ContainsFunc(c.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == owner })
}

// otherState deletes the claims with the label but for one.
func (o Observed) otherState(held *corev1.PersistentVolumeClaim) []scheduler.Action {
	var out []scheduler.Action
	for _, c := range o.State {
		if c != held && c.Labels[vmi.StateLabel] != "" && o.ownsState(c) {
			out = append(out, withoutState(c)...)
		}
	}
	return out
}

// labelState gives the claim of a target the label of one that a start uses.
func labelState(o Observed, c *corev1.PersistentVolumeClaim) []scheduler.Action {
	if c.Labels[vmi.StateLabel] != "" || c.Labels[vmi.MigrationNameLabel] == "" || c.DeletionTimestamp != nil {
		return nil
	}
	return []scheduler.Action{scheduler.ChangeClaim{Name: c.Name, UID: c.UID,
		Labels: map[string]string{vmi.StateLabel: pod.StateClaim(o.VMI, o.Config).Labels[vmi.StateLabel]}, Removed: []string{vmi.MigrationNameLabel}}}
}

// withoutState deletes the claim. Nil: there is none.
func withoutState(c *corev1.PersistentVolumeClaim) []scheduler.Action {
	if c == nil || c.DeletionTimestamp != nil {
		return nil
	}
	return []scheduler.Action{scheduler.DeleteClaim{Name: c.Name, UID: c.UID}}
}
