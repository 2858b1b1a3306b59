package handler

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
)

// Pod is a launcher pod of a VMI on this node. The zero value is none.
type Pod struct {
	// UID is the pod's.
	UID types.UID
	// Role is what the pod is for the VMI.
	Role vmi.Role
}

// Pods are the pods of the VMI on the node, as virt-controller handed them over: the one
// that the VMI runs in, or the one that it moves to, or was to move to. A pod that is in the status without
// such a role is none. This is the only place that says which launchers are connected
// to. A handler may read no pod: that each in status.activePods was made for the VMI by
// virt-controller, and is on that node, the webhook for what virt-controller writes finds
// out before the status is stored (scheduler/admission.Owned), and no handler writes them.
// A VMI that failed has none, but one of which it is to be found out whether it runs still.
func Pods(v *vmi.VirtualMachineInstance, node string) []Pod {
	if v == nil || !handedOver(v) && (!v.Status.Uncertain() || !v.Status.PodRemoved()) {
		return nil
	}
	var p Pod
	switch m := v.Status.MigrationState; {
	case v.Status.NodeName == node:
		p = Pod{UID: podOn(v, node), Role: vmi.RoleActive}
	case m != nil && m.TargetNode == node && (!m.Completed || m.Failed):
		p = Pod{UID: podOn(v, node), Role: vmi.RoleTarget}
	}
	if p.UID == "" {
		return nil
	}
	return []Pod{p}
}

// ActivePod is the UID of the pod that the VMI runs in, or is to run in. Empty: there is
// none.
func ActivePod(v *vmi.VirtualMachineInstance) types.UID { return podOn(v, v.Status.NodeName) }

// handedOver says that virt-controller has given the VMI to the handlers, and
// that it has not ended.
func handedOver(v *vmi.VirtualMachineInstance) bool {
	return v.Status.Phase == vmi.PhaseScheduled || v.Status.Phase == vmi.PhaseRunning
}

// podOn is the UID of the VMI's pod on the node. Empty: it has none there. Of
// several it is always the same.
func podOn(v *vmi.VirtualMachineInstance, node string) types.UID {
	var found types.UID
	for uid, n := range v.Status.ActivePods {
		if n == node && (found == "" || uid < found) {
			found = uid
		}
	}
	return found
}
