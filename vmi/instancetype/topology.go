package instancetype

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// defaultRatio is the ratio of spread processors, and the only one of threads.
const defaultRatio = 2

// Topology is how processors are divided, by its present name. A nil preference has
// sockets.
func (p *VirtualMachinePreferenceSpec) Topology() Topology {
	if p == nil || p.CPU == nil || p.CPU.PreferredCPUTopology == nil {
		return TopologySockets
	}
	t := *p.CPU.PreferredCPUTopology
	if former, ok := strings.CutPrefix(string(t), "prefer"); ok {
		return Topology(strings.ToLower(former))
	}
	return cmp.Or(t, TopologySockets)
}

// Spread is what processors of the topology spread are divided among, and how many of the
// second there are for each of the first.
func (p *VirtualMachinePreferenceSpec) Spread() (SpreadAcross, uint32) {
	across, ratio := SpreadSocketsCores, cmp.Or(p.PreferSpreadSocketToCoreRatio, defaultRatio)
	if p.CPU != nil && p.CPU.SpreadOptions != nil {
		if o := p.CPU.SpreadOptions; o.Across != nil {
			across = cmp.Or(*o.Across, across)
		}
		if o := p.CPU.SpreadOptions; o.Ratio != nil {
			ratio = *o.Ratio
		}
	}
	return across, ratio
}

// divide makes sockets, cores and threads of the processors of an instance type. What cannot
// be divided is a fault of the two together ([Faults]).
func divide(guest uint32, p *VirtualMachinePreferenceSpec) (sockets, cores, threads uint32) {
	if guest <= 1 {
		return 1, 1, 1
	}
	switch p.Topology() {
	case TopologySockets, TopologyAny:
		return guest, 1, 1
	case TopologyCores:
		return 1, guest, 1
	case TopologyThreads:
		return 1, 1, guest
	case TopologySpread:
		return spread(guest, p)
	}
	return 1, 1, 1
}

func spread(guest uint32, p *VirtualMachinePreferenceSpec) (sockets, cores, threads uint32) {
	across, ratio := p.Spread()
	if ratio == 0 { // no validation has seen it
		return guest, 1, 1
	}
	switch across {
	case SpreadSocketsCores:
		return guest / ratio, ratio, 1
	case SpreadCoresThreads:
		return 1, guest / ratio, ratio
	case SpreadSocketsCoresThreads:
		return guest / defaultRatio / ratio, ratio, defaultRatio
	}
	return 1, 1, 1
}

// indivisible is the fault of processors that cannot be spread as the preference says.
func indivisible(guest uint32, p *VirtualMachinePreferenceSpec) field.ErrorList {
	if p.Topology() != TopologySpread {
		return nil
	}
	at := field.NewPath("instancetype", "spec", "cpu", "guest")
	across, ratio := p.Spread()
	each := max(ratio, 1)
	if across == SpreadSocketsCoresThreads {
		each *= defaultRatio
	}
	if guest%each == 0 && ratio != 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, guest, fmt.Sprintf(
		"the preference spreads processors across %s with the ratio %d, which needs a multiple of %d: name another instance type or preference", across, ratio, each))}
}

// overcommitted is the memory that is asked for where a part of the guest's is not. It is
// computed with the precision of 32 bits, so that it is the number that other programs
// which read the API compute.
func overcommitted(guest resource.Quantity, percent int) resource.Quantity {
	share := float32(guest.Value()) * (1 - float32(percent)/100)
	return *resource.NewQuantity(int64(share), guest.Format)
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
