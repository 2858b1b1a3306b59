package instance

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/network/cni"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// mostNeighbours is how many other VMIs a message names at most.
const mostNeighbours = 3

// station is an interface on a secondary network, with the MAC address that the spec
// names.
type station struct{ name, network, mac string }

// key is the same for all that have the address on the network.
func (s station) key() string { return s.network + " " + s.mac }

// stations are those of the VMI. Interfaces without an address of the spec have one that
// follows from the UID of their owner, which no other has.
func stations(v *vmi.VirtualMachineInstance) []station {
	networks := cni.Definitions(v)
	var out []station
	for _, i := range v.Spec.Domain.Devices.Interfaces {
		if at, ok := networks[i.Name]; ok && i.MacAddress != "" {
			mac := strings.ReplaceAll(strings.ToLower(i.MacAddress), "-", ":")
			out = append(out, station{i.Name, at.String(), mac})
		}
	}
	return out
}

// MACAddressKeys are the networks with the MAC addresses that the VMI has there, in a form that
// is the same for all VMIs with such a pair. One that has ended has none.
func MACAddressKeys(v *vmi.VirtualMachineInstance) []string {
	if v.Status.Phase.Final() {
		return nil
	}
	var keys []string
	for _, s := range stations(v) {
		keys = append(keys, s.key())
	}
	return keys
}

// duplicateMAC says which interfaces of the VMI have a MAC address that another VMI has on
// the same network. A VMI of another namespace is not named.
func duplicateMAC(o Observed) (vmi.Finding, bool) {
	var said []string
	for _, mine := range stations(o.VMI) {
		var others []string
		for _, n := range o.Neighbours {
			if !slices.Contains(MACAddressKeys(n), mine.key()) {
				continue
			}
			other := "VMI " + n.Name
			if n.Namespace != o.VMI.Namespace {
				other = "a VMI of another namespace"
			}
			others = append(others, other)
		}
		slices.Sort(others)
		others = slices.Compact(others)
		if more := len(others) - mostNeighbours; more > 0 {
			others = append(others[:mostNeighbours], fmt.Sprintf("%d more", more))
		}
		if len(others) > 0 {
			said = append(said, fmt.Sprintf("interface %s has the MAC address %s on network %s, and so has %s", mine.name, mine.mac, mine.network, strings.Join(others, ", ")))
		}
	}
	if len(said) == 0 {
		return vmi.Finding{}, false
	}
	return vmi.Finding{Reason: DuplicateMACAddress, Message: strings.Join(said, "; ") + ": give each another one, or none"}, true
}

// duplicates writes the condition of a VMI whose MAC address another one has, and takes it
// back. It is a warning: the guest runs. It names those that were there first: a thousand
// VMIs with one address would otherwise write each other's status a million times.
func duplicates(o Observed) scheduler.Plan {
	f, ok := duplicateMAC(o)
	old := o.VMI.Status.Condition(vmi.ConditionDuplicateMACAddress)
	switch {
	case !ok && old == nil:
		return scheduler.Plan{} // no other part of the status is looked at
	case !ok:
		return write(o, func(s *vmi.VirtualMachineInstanceStatus, _ metav1.Time) {
			s.RemoveCondition(vmi.ConditionDuplicateMACAddress)
		})
	case old != nil:
		return scheduler.Plan{}
	}
	return write(o, func(s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
		s.SetCondition(vmi.Condition{Type: vmi.ConditionDuplicateMACAddress, Status: corev1.ConditionTrue, Reason: f.Reason, Message: f.Message}, now)
	}, scheduler.Emit{Warning: true, Finding: f})
}
