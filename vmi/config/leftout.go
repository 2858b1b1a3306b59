package config

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/validate"
)

// permittedDevices is where a configuration has the devices of nodes.
var permittedDevices = field.NewPath("spec", "configuration", "permittedHostDevices")

// leftOut is what is wrong with the devices of nodes that a configuration which is in force
// leaves out, or nothing.
func leftOut(k *vmi.KubeVirt) field.ErrorList {
	var l field.ErrorList
	for _, e := range validate.KubeVirt(k) {
		if validate.Within(e.Field, permittedDevices.String()) {
			l = append(l, e)
		}
	}
	return l
}

// withoutFaultyDevices is a copy without the devices of nodes that have faults.
func withoutFaultyDevices(k *vmi.KubeVirt, faults field.ErrorList) *vmi.KubeVirt {
	k = k.DeepCopy()
	p := k.Spec.Configuration.PermittedHostDevices
	if p == nil {
		return k
	}
	faulty := func(list string, i int) bool {
		for _, e := range faults {
			if validate.Within(e.Field, fmt.Sprintf("%s.%s[%d]", permittedDevices, list, i)) {
				return true
			}
		}
		return false
	}
	p.PCIHostDevices = right(p.PCIHostDevices, func(i int) bool { return !faulty("pciHostDevices", i) })
	p.MediatedDevices = right(p.MediatedDevices, func(i int) bool { return !faulty("mediatedDevices", i) })
	return k
}

// right are the elements of a list that are kept, by their numbers.
func right[T any](all []T, keep func(int) bool) []T {
	var out []T
	for i := range all {
		if keep(i) {
			out = append(out, all[i])
		}
	}
	return out
}
