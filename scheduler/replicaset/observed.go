package replicaset

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/podvisor/podvisor/vmi"
)

// Observed is everything that a decision depends on.
type Observed struct {
	// Set is the VirtualMachineInstanceReplicaSet as it is stored.
	Set *vmi.VirtualMachineInstanceReplicaSet
	// Instances are the VMIs of the set's namespace.
	Instances []*vmi.VirtualMachineInstance
	// Refusal is why the API server did not accept a VMI of the last plan. Nil: it was
	// not asked, or accepted all.
	Refusal *vmi.Finding
	// Unguarded says that Podvisor may be deleted at any moment, also under VMIs.
	Unguarded bool
	// Written is when the status was written last, by this process. Zero: never.
	Written time.Time
	// Now is the present time.
	Now time.Time
}

// members are the VMIs of the set, by what becomes of them.
type members struct {
	adopt   []*vmi.VirtualMachineInstance // match, and have no controller
	release []*vmi.VirtualMachineInstance // are controlled, and do not match
	alive   []*vmi.VirtualMachineInstance // have not ended, and are not being deleted
	ended   []*vmi.VirtualMachineInstance // are to be replaced now
	held    []*vmi.VirtualMachineInstance // are to be replaced later
	// settles is when the first of those that are held is to be replaced.
	settles time.Duration
	// names are those of all VMIs of the namespace.
	names map[string]bool
}

// sort sorts the VMIs of the namespace.
func sort(o Observed, selector labels.Selector) members {
	m := members{names: map[string]bool{}}
	for _, v := range o.Instances {
		m.names[v.Name] = true
		matches, controller := selector.Matches(labels.Set(v.Labels)), metav1.GetControllerOfNoCopy(v)
		switch {
		case controller == nil && matches && v.DeletionTimestamp == nil && !v.Status.Phase.Final():
			m.adopt = append(m.adopt, v)
		case controller == nil || controller.UID != o.Set.UID:
		case v.DeletionTimestamp != nil:
		case !matches:
			m.release = append(m.release, v)
		case !v.Status.Phase.Final():
			m.alive = append(m.alive, v)
		default:
			left := heldFor(v, o.Now)
			if left <= 0 {
				m.ended = append(m.ended, v)
				continue
			}
			m.held = append(m.held, v)
			if m.settles == 0 || left < m.settles {
				m.settles = left
			}
		}
	}
	return m
}
