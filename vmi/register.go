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

// Kind is the kind of a VirtualMachineInstance. The others are named after
// theirs.
var (
	Kind               = GroupVersion.WithKind("VirtualMachineInstance")
	VirtualMachineKind = GroupVersion.WithKind("VirtualMachine")
	ReplicaSetKind     = GroupVersion.WithKind("VirtualMachineInstanceReplicaSet")
	MigrationKind      = GroupVersion.WithKind("VirtualMachineInstanceMigration")
	KubeVirtKind       = GroupVersion.WithKind("KubeVirt")
)

// Resource is the resource of a VirtualMachineInstance, as in REST paths. The
// others are named after their kinds.
var (
	Resource               = GroupVersion.WithResource("virtualmachineinstances")
	VirtualMachineResource = GroupVersion.WithResource("virtualmachines")
	ReplicaSetResource     = GroupVersion.WithResource("virtualmachineinstancereplicasets")
	MigrationResource      = GroupVersion.WithResource("virtualmachineinstancemigrations")
	KubeVirtResource       = GroupVersion.WithResource("kubevirts")
)

// AddToScheme registers the kinds of this package in s.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&VirtualMachineInstance{}, &VirtualMachineInstanceList{},
		&VirtualMachine{}, &VirtualMachineList{},
		&VirtualMachineInstanceReplicaSet{}, &VirtualMachineInstanceReplicaSetList{},
		&VirtualMachineInstanceMigration{}, &VirtualMachineInstanceMigrationList{},
		&KubeVirt{}, &KubeVirtList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
