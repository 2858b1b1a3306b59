package controller

import (
	"slices"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
)

// mostNeighbours is how many VMIs with a MAC address of another one are looked at: without
// a limit, the work for many with one address grows with the square of their number. The
// others learn of it when they change themselves.
const mostNeighbours = 16

// neighbours are other VMIs with a MAC address of v on the same network, each once, in all
// namespaces: at most mostNeighbours.
func (s *caches) neighbours(v *vmi.VirtualMachineInstance) []*vmi.VirtualMachineInstance {
	var out []*vmi.VirtualMachineInstance
	for _, station := range instance.MACAddressKeys(v) {
		found, _ := s.instances.GetIndexer().ByIndex(IndexMAC, station) // the index exists
		for _, o := range found {
			if len(out) == mostNeighbours {
				return out
			}
			if other := o.(*vmi.VirtualMachineInstance); reconcile.Key(other) != reconcile.Key(v) && !slices.Contains(out, other) {
				out = append(out, other)
			}
		}
	}
	return out
}

// instancesNear are the keys of the VMIs that have a MAC address of v on the same network:
// they say so while v has not ended.
func (s *caches) instancesNear(v *vmi.VirtualMachineInstance) []string {
	live := *v
	live.Status.Phase = vmi.PhaseUnset // also of one that has just ended
	var keys []string
	for _, other := range s.neighbours(&live) {
		keys = append(keys, reconcile.Key(other))
	}
	return keys
}
