package scheduler

import "github.com/podvisor/podvisor/vmi"

// Kinds are the definitions of the kinds whose objects run guests, or make others that
// do, those that make others first. Podvisor is not deleted while there are any.
func Kinds() []vmi.Definition {
	return []vmi.Definition{
		vmi.VirtualMachines.Definition, vmi.VirtualMachineInstanceReplicaSets.Definition, vmi.VirtualMachineInstances.Definition,
	}
}
