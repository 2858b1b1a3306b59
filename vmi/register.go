package vmi

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of all kinds in this package.
const GroupName = "kubevirt.io"

// GroupVersion is the served version of the group.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1"}

// Kind is the kind of a VirtualMachineInstance, and Resource its resource. Those
// of every kind are in its definition, as in [VirtualMachines].
var (
	Kind     = VirtualMachineInstances.GroupVersionKind
	Resource = VirtualMachineInstances.Resource()
)

// Definitions are the definitions of all kinds of this package.
func Definitions() []Definition { return slices.Clone(definitions) }

// AddToScheme registers the kinds of this package in s.
func AddToScheme(s *runtime.Scheme) error {
	for _, d := range definitions {
		d.AddToScheme(s)
	}
	return nil
}
