package migration

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
)

// Observed is everything that a decision depends on.
type Observed struct {
	// Migration is the migration as it is stored.
	Migration *vmi.VirtualMachineInstanceMigration
	// VMI is the VMI that it names. Nil: it does not exist.
	VMI *vmi.VirtualMachineInstance
	// Others are the other migrations of the VMI.
	Others []*vmi.VirtualMachineInstanceMigration
	// Pods are the pods that were made for the VMI, and Target is the one that was made for
	// the migration. Nil: it does not exist.
	Pods   []*corev1.Pod
	Target *corev1.Pod
	// Claim is the claim for the VMI's state that was made for the migration. Nil: it does not
	// exist, or the VMI has none.
	Claim *corev1.PersistentVolumeClaim
	// TargetFenced says that nothing runs on the node of the target any more, which may have been
	// removed with it.
	TargetFenced bool
	// Turn says that the queue has a place for the migration. Then the VMI is whole.
	Turn bool
	// Config is how the target is rendered. Its Role is not used.
	Config pod.Config
	// Settings are those of a migration that is not handed over yet.
	Settings Settings
	// Calls are what the handlers were asked, and have answered.
	Calls Calls
	// HandedOver is when this process first observed that the VMI was handed over to the node
	// of the target. Zero: it was not, or that is not known.
	HandedOver time.Time
	// Warned says that a warning was written of a target that is refused, or for which there
	// is no node.
	Warned bool
	// NoModel says that no other node has what the processor of the guest needs: see
	// [Observed.ModelLabels].
	NoModel bool
	// Refusal is why the target of the last plan was not accepted. Nil: none was refused.
	Refusal *vmi.Finding
	// Now is the present time.
	Now time.Time
}

// Settings are those of a migration that is to be handed over, from the cluster's
// configuration and a MigrationPolicy. They stay in the VMI's status: a change reaches no
// migration that is under way.
type Settings struct {
	// Configuration are the settings. Nil: none is set.
	Configuration *vmi.MigrationConfiguration
	// Policy is the name of the MigrationPolicy. Empty: none applies.
	Policy string
}

// Calls are the calls of a migration to the handlers of its nodes.
type Calls struct {
	// Over is the start that says that the target is over, and Hold the one before, after
	// which the guest does not run on yet.
	Announce, Accept, Start, Hold, Over, Abort Asked
}

// Asked is what is known of a call that is repeated. The zero value was never made.
type Asked struct {
	// Now says that it is being made.
	Now bool
	// Since is when it was made first.
	Since time.Time
	// At is when it was answered last. Zero: it was not.
	At time.Time
	// Refusal is why it was not done. Nil: it was.
	Refusal *vmi.Finding
}

// done says that the call was answered, and done.
func (a Asked) done() bool { return !a.At.IsZero() && a.Refusal == nil }

// unknown says that the handler knows of no such migration.
func (a Asked) unknown() bool { return a.Refusal != nil && a.Refusal.Reason == vmi.RefusedNotFound }

// mine says that the VMI was handed over for the migration.
func mine(o Observed) bool {
	m := state(o)
	return m != nil && m.MigrationUID == o.Migration.UID
}

// state is the migrationState of the VMI, or nil.
func state(o Observed) *vmi.MigrationState {
	if o.VMI == nil {
		return nil
	}
	return o.VMI.Status.MigrationState
}

// missing says that the VMI that is to move does not exist: none of its name does, or one
// that was made later.
func missing(o Observed) bool {
	return o.VMI == nil || o.VMI.CreationTimestamp.After(o.Migration.CreationTimestamp.Time)
}

// source is the pod that the VMI runs in. Nil: it is not known.
func source(o Observed) *corev1.Pod {
	return instance.PodsByRole(o.VMI, o.Pods).Active
}

// unended are the pods of the VMI whose launchers may run.
func unended(o Observed) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(o.Pods), launched.Ended)
}

// active says that the VMI runs in the pod.
func active(v *vmi.VirtualMachineInstance, uid types.UID) bool {
	node, ok := v.Status.ActivePods[uid]
	return ok && node == v.Status.NodeName
}

// over says that nothing of the target runs: it has ended, its node is fenced, or it was
// removed and the handler of its node says that nothing of it is left.
func over(o Observed) bool {
	if o.Target == nil {
		why := o.Calls.Accept.Refusal
		return o.TargetFenced || why != nil && why.Reason == protocol.ReasonNotMoved
	}
	return launched.Ended(o.Target) || o.TargetFenced
}

// hasMoved says that the guest ran at the target, by the handler of the source or by the end of
// its launcher.
func hasMoved(o Observed) bool {
	for _, a := range []Asked{o.Calls.Hold, o.Calls.Over} {
		if a.Refusal != nil && a.Refusal.Reason == string(protocol.MovedAway) {
			return true
		}
	}
	p := source(o)
	return p != nil && launched.MovedAway(p)
}

// targetUID is the UID of the target, which may have been removed. Empty: it is not known.
func targetUID(o Observed) types.UID {
	if o.Target != nil {
		return o.Target.UID
	}
	for uid, node := range o.VMI.Status.ActivePods {
		if node == state(o).TargetNode && !active(o.VMI, uid) {
			return uid
		}
	}
	return ""
}
