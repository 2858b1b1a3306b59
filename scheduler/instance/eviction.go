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
//	pod                     strategy               what is done
//	not the active one      any                    goes on
//	the active one          None                   goes on: the guest is asked to power off
//	                        LiveMigrateIfPossible  goes on: no VMI can be migrated
//	                        LiveMigrate            refused: no VMI can be migrated
//	                        External               refused; the node to leave is written, once
//
// A VMI that has ended or is deleted has no active pod here.
func Eviction(v *vmi.VirtualMachineInstance, p *corev1.Pod, profile defaults.Profile) Verdict {
	if !runsIn(v, p) {
		return Verdict{}
	}
	switch *defaults.Spec(&v.Spec, profile).EvictionStrategy {
	case vmi.EvictionLiveMigrate:
		return Verdict{Refusal: fmt.Sprintf("VMI %s has evictionStrategy LiveMigrate and cannot be migrated: "+
			"stop or delete the VMI, or set evictionStrategy None or LiveMigrateIfPossible on its owner and start it again", name(v))}
	case vmi.EvictionExternal:
		return external(v, p)
	}
	return Verdict{}
}

// external leaves the VMI to a controller that is not ours. The message begins as
// KubeVirt's does, by which the descheduler knows that the pod is about to go.
func external(v *vmi.VirtualMachineInstance, p *corev1.Pod) Verdict {
	d := Verdict{Refusal: fmt.Sprintf("Eviction triggered evacuation of VMI %s: it has evictionStrategy External, "+
		"and another controller is to move or delete it, which status.evacuationNodeName asks for; if there is none, delete the VMI", name(v))}
	if v.Status.EvacuationNodeName != p.Spec.NodeName {
		d.Leave = p.Spec.NodeName
	}
	return d
}

// runsIn reports whether the pod is the active one of a VMI that has not ended.
// A user with the right to create pods can create one with the VMI as owner; only
// virt-controller says which is the active one.
func runsIn(v *vmi.VirtualMachineInstance, p *corev1.Pod) bool {
	switch {
	case v.DeletionTimestamp != nil || v.Status.Phase.Final():
		return false
	case p.DeletionTimestamp != nil || launched.Ended(p) || !launched.Owned(p, v):
		return false
	}
	return isActive(v, p)
}

// name is the VMI's, as messages have it.
func name(v *vmi.VirtualMachineInstance) string {
	return fmt.Sprintf("%q", v.Namespace+"/"+v.Name)
}
