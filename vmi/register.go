package vmi

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of all kinds in this package.
const GroupName = "kubevirt.io"

// GroupVersion is the served version of the group.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1"}

// Kind is the kind of a VirtualMachineInstance.
var Kind = GroupVersion.WithKind("VirtualMachineInstance")

// Resource is the resource of a VirtualMachineInstance, as in REST paths.
var Resource = GroupVersion.WithResource("virtualmachineinstances")

// AddToScheme registers the kinds of this package in s.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &VirtualMachineInstance{}, &VirtualMachineInstanceList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
