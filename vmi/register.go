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

// Definitions are the definitions of all kinds of this package.
func Definitions() []Definition { return slices.Clone(definitions) }

// AddToScheme registers the kinds of this package in s.
func AddToScheme(s *runtime.Scheme) error {
	for _, d := range definitions {
		d.AddToScheme(s)
	}
	return nil
}
