package replicaset

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
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
	// Profile is what defaults depend on.
	Profile defaults.Profile
	// Unguarded says that Podvisor may be deleted at any moment, also under VMIs.
	Unguarded bool
	// StatusWritten is when this process last wrote the status. Zero: never.
	StatusWritten time.Time
	// Now is the present time.
	Now time.Time
}

// members are the VMIs of the set, by what becomes of them, in the order of their
// names.
type members struct {
	adopt   []*vmi.VirtualMachineInstance // match, and have no controller
	release []*vmi.VirtualMachineInstance // are controlled, and do not match
	alive   []*vmi.VirtualMachineInstance // have not ended, and are not being deleted
	ended   []*vmi.VirtualMachineInstance // are replaced at once
	failed  []*vmi.VirtualMachineInstance // are replaced after a back-off
	// names are those of all VMIs of the namespace.
	names map[string]bool
}

// classify says which of the VMIs of the namespace belong to the set, and as what.
func classify(o Observed, selector labels.Selector) members {
	m := members{names: map[string]bool{}}
	byName := func(a, b *vmi.VirtualMachineInstance) int { return cmp.Compare(a.Name, b.Name) }
	for _, v := range slices.SortedFunc(slices.Values(o.Instances), byName) {
		m.names[v.Name] = true
		matches, controller := selector.Matches(labels.Set(v.Labels)), metav1.GetControllerOfNoCopy(v)
		switch {
		case v.DeletionTimestamp != nil:
		case controller == nil && matches && !v.Status.Phase.Final():
			m.adopt = append(m.adopt, v)
		case controller == nil || controller.UID != o.Set.UID:
		case !matches:
			m.release = append(m.release, v)
		case !v.Status.Phase.Final():
			m.alive = append(m.alive, v)
		case backOff(v) == 0:
			m.ended = append(m.ended, v)
		default:
			m.failed = append(m.failed, v)
		}
	}
	return m
}
