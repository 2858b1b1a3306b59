package instance

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/network/cni"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
)

// Observed is everything that a decision depends on.
type Observed struct {
	// VMI is the instance as it is stored. Defaults need not be applied.
	VMI *vmi.VirtualMachineInstance
	// Pods are the pods of the VMI.
	Pods Pods
	// Former are the pods of earlier VMIs of the same name, on nodes that are not fenced.
	Former []*corev1.Pod
	// Node is the node of the VMI's active pod.
	Node Node
	// Silence is what is known of an active pod that waits and does not say why. Nil:
	// it is not such a pod, or nothing is known yet.
	Silence *Silence
	// Claims are the claims that [ClaimNames] names, by their names. A nil
	// value: the claim does not exist.
	Claims map[string]*corev1.PersistentVolumeClaim
	// State are the claims for the state of VMIs of this name, and the one that the VMI's
	// migration moves it to.
	State []*corev1.PersistentVolumeClaim
	// Definitions are what the networks of the VMI need, by the networks' names. They
	// matter before the VMI has a pod. A nil value: the network's
	// NetworkAttachmentDefinition does not exist. A network that is not in it: no
	// definition was looked for.
	Definitions map[string]*cni.Definition
	// Sharers are the other VMIs with volumes in these claims. They matter before the
	// VMI has a pod.
	Sharers []Sharer
	// Neighbours are the other VMIs that share one of the [MACAddressKeys] of this one. They
	// matter once the VMI has a pod.
	Neighbours []*vmi.VirtualMachineInstance
	// Config is how pods are rendered. Its Facts are those of Observed.
	Config pod.Config
	// Refusal is why the pod of the last plan was not accepted. Nil: no pod was
	// refused since the VMI was observed.
	Refusal *vmi.Finding
	// Unguarded says that Podvisor may be deleted at any moment, also under VMIs.
	Unguarded bool
	// Now is the present time.
	Now time.Time
}

// Pods are the pods of a VMI by their role.
type Pods struct {
	// Active is the pod that the VMI runs in, or will. Nil: it does not exist.
	Active *corev1.Pod
	// Removed is the last state of the pod that a VMI ran in that has ended since, if the pod
	// was removed while its launcher ran, as by force. Nil: that is not known.
	Removed *corev1.Pod
	// Targets are the pods that migrations move the VMI to.
	Targets []*corev1.Pod
	// Stray are the others: pods that were made for the VMI, or that have the name
	// of its pod, and that have no role.
	Stray []*corev1.Pod
}

// PodsByRole sorts the pods of a VMI by their role: those that were made for it, and the
// one with the name that its pod has. From the hand-over on, the status says which
// pod is the active one; before, it is the one with the name.
func PodsByRole(v *vmi.VirtualMachineInstance, pods []*corev1.Pod) Pods {
	var r Pods
	for _, p := range pods {
		switch {
		case isActive(v, p):
			r.Active = p
		case launched.Role(p) == vmi.RoleTarget && launched.Owned(p, v):
			r.Targets = append(r.Targets, p)
		default:
			r.Stray = append(r.Stray, p)
		}
	}
	return r
}

func isActive(v *vmi.VirtualMachineInstance, p *corev1.Pod) bool {
	if len(v.Status.ActivePods) == 0 {
		return p.Name == pod.Name(v)
	}
	node, ok := v.Status.ActivePods[p.UID]
	return ok && (node == v.Status.NodeName || v.Status.NodeName == "")
}

// ActivePodName is the name of the pod that the VMI runs in, or that is to be made: after a
// migration it is that of the migration's target.
func ActivePodName(v *vmi.VirtualMachineInstance) string {
	name := ""
	if m := v.Status.MigrationState; m != nil && v.Status.NodeName != "" {
		switch v.Status.NodeName {
		case m.TargetNode:
			name = m.TargetPod
		case m.SourceNode:
			name = m.SourcePod
		}
	}
	return cmp.Or(name, pod.Name(v))
}

// handedOver reports whether virt-handler writes the VMI's status.
func handedOver(v *vmi.VirtualMachineInstance) bool {
	switch v.Status.Phase {
	case vmi.PhaseScheduled, vmi.PhaseRunning, vmi.PhaseUnknown:
		return true
	}
	return false
}

// Node is a node and its virt-handler.
type Node struct {
	// Name is the node's name. Empty: there is no node yet.
	Name string
	// Object is the node as it is stored. Nil: it does not exist.
	Object *corev1.Node
	// Handler is the pod of virt-handler on the node. Nil: there is none.
	Handler *corev1.Pod
	// HandlerDown is since when no pod of virt-handler on the node has been ready.
	// Zero: one is ready, or virt-handler is not observed.
	HandlerDown time.Time
}

// NodeName is the name of the node of the active pod of v, or empty if it has none yet.
func (p Pods) NodeName(v *vmi.VirtualMachineInstance) string {
	if p.Active != nil {
		return p.Active.Spec.NodeName
	}
	return v.Status.NodeName
}

// ClaimNames are the names of the claims that the VMI's volumes are in, and of the
// one for what outlasts it besides its disks.
func ClaimNames(v *vmi.VirtualMachineInstance) []string {
	var names []string
	for i := range v.Spec.Volumes {
		if name := v.Spec.Volumes[i].Claim(); name != "" {
			names = append(names, name)
		}
	}
	if v.Spec.Domain.KeepsState() {
		names = append(names, pod.StateClaim(v, pod.Config{}).Name)
	}
	return names
}
