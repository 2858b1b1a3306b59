package reconcile

import "github.com/podvisor/podvisor/vmi"

// LogKey is the key that names an object in logs: vmi for a VMI, as in the logs of all
// components, and object for any other.
func LogKey(o any) string {
	if _, ok := o.(*vmi.VirtualMachineInstance); ok {
		return "vmi"
	}
	return "object"
}
