package instance

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// Verdict is the answer to a request to evict a pod from its node.
type Verdict struct {
	// Refusal says why the pod stays, and what can be done. Empty: the eviction
	// goes on.
	Refusal string
	// Leave is the node that is to be written into the VMI's
	// status.evacuationNodeName. Empty: nothing is to be written.
	Leave string
}

// Eviction decides on the eviction of the pod by the strategy of the VMI, or by
// that of the cluster where the VMI was stored without one:
//
//	pod             strategy               LiveMigratable  what is done
//	of no VMI that  any                    any             goes on
//	has not ended
//	any             None                   any             goes on: the guest is asked to power off
//	the active one  LiveMigrate            True            refused; the node to leave is written, once
//	                                       not True        refused
//	                LiveMigrateIfPossible  True            refused; the node to leave is written, once
//	                                       not True        goes on: the guest is asked to power off
//	                External               any             refused; the node to leave is written, once
//	the target of   any but None           any             refused: the VMI comes there
//	a migration
//
// Clients know the beginnings of the messages.
func Eviction(v *vmi.VirtualMachineInstance, p *corev1.Pod, profile defaults.Profile) Verdict {
	strategy := *defaults.Spec(&v.Spec, profile).EvictionStrategy
	switch {
	case strategy == vmi.EvictionNone || !lives(v, p):
		return Verdict{}
	case isActive(v, p):
	case isTarget(v, p):
		return Verdict{Refusal: fmt.Sprintf("Eviction request for target Pod: VMI %s moves to it", name(v))}
	default:
		return Verdict{}
	}
	c := v.Status.Condition(vmi.ConditionLiveMigratable)
	movable := c != nil && c.Status == corev1.ConditionTrue
	switch {
	case movable, strategy == vmi.EvictionExternal:
		return evacuation(v, p, strategy)
	case strategy == vmi.EvictionLiveMigrate:
		return Verdict{Refusal: fmt.Sprintf("VMI %s is configured with an eviction strategy but is not live-migratable%s: "+
			"stop or delete the VMI, or set evictionStrategy None or LiveMigrateIfPossible on its owner and start it again", v.Name, because(c))}
	}
	return Verdict{}
}

// because is what a condition says, as a part of a message.
func because(c *vmi.Condition) string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf(" (%s: %s)", c.Reason, c.Message)
}

// evacuation has the VMI leave its node.
func evacuation(v *vmi.VirtualMachineInstance, p *corev1.Pod, strategy vmi.EvictionStrategy) Verdict {
	says := "Eviction triggered evacuation of VMI " + name(v)
	if v.Status.EvacuationNodeName != p.Spec.NodeName {
		return Verdict{Refusal: says, Leave: p.Spec.NodeName}
	}
	return Verdict{Refusal: "Evacuation in progress: " + says + ": " + progress(v, strategy)}
}

// progress says how far the evacuation of the VMI is.
func progress(v *vmi.VirtualMachineInstance, strategy vmi.EvictionStrategy) string {
	m := v.Status.MigrationState
	switch {
	case strategy == vmi.EvictionExternal:
		return "it has evictionStrategy External, and another controller is to move or delete it, which status.evacuationNodeName asks for; if there is none, delete the VMI"
	case m == nil || m.Completed && !m.Failed:
		return fmt.Sprintf("its migration waits, for what kubectl describe vmim -n %s -l %s=%s says", v.Namespace, vmi.MigrationSelectorLabel, v.Name)
	case m.Failed:
		return "its last migration has failed, and another is made: " + m.FailureReason
	case m.StartTimestamp == nil:
		return "node " + m.TargetNode + " is prepared for it"
	}
	return "it moves to node " + m.TargetNode
}

// lives reports whether the pod is one of a VMI that has not ended.
func lives(v *vmi.VirtualMachineInstance, p *corev1.Pod) bool {
	return v.DeletionTimestamp == nil && !v.Status.Phase.Final() &&
		p.DeletionTimestamp == nil && !launched.Ended(p) && launched.Owned(p, v)
}

// isTarget reports whether a migration moves the VMI to the pod, and has not moved it on from
// there. A user with the right to create pods can create one with the VMI as owner: the API
// server takes the labels of a target from virt-controller alone.
func isTarget(v *vmi.VirtualMachineInstance, p *corev1.Pod) bool {
	m := v.Status.MigrationState
	return launched.Adoptable(p, v) && launched.Role(p) == vmi.RoleTarget && (m == nil || m.SourcePod != p.Name)
}

// name is the VMI's, as messages have it.
func name(v *vmi.VirtualMachineInstance) string {
	return fmt.Sprintf("%q", v.Namespace+"/"+v.Name)
}
