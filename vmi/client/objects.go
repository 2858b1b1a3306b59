package client

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"

	"github.com/podvisor/podvisor/vmi"
)

// Object is an object of one of the kinds of package vmi.
type Object interface {
	*vmi.VirtualMachineInstance | *vmi.VirtualMachine | *vmi.VirtualMachineInstanceReplicaSet |
		*vmi.VirtualMachineInstanceMigration | *vmi.KubeVirt
	runtime.Object
	metav1.Object
}

// Objects reads and writes the objects T of one kind in one namespace; made
// without a namespace, it lists and watches those in all. L is their list.
type Objects[T Object, L runtime.Object] interface {
	Create(ctx context.Context, o T, opts metav1.CreateOptions) (T, error)
	Update(ctx context.Context, o T, opts metav1.UpdateOptions) (T, error)
	UpdateStatus(ctx context.Context, o T, opts metav1.UpdateOptions) (T, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
	DeleteCollection(ctx context.Context, opts metav1.DeleteOptions, which metav1.ListOptions) error
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error)

	// Apply makes the fields that are set in o so, and creates the object if it
	// is not there (server-side apply). opts.FieldManager names who wants it so:
	// a field that the same manager applied before and that is not set in o any
	// more is removed, unless somebody else wants it too.
	//
	// Only what is set is sent, see [Configuration] for what that means.
	Apply(ctx context.Context, o T, opts metav1.ApplyOptions) (T, error)
}

// The clients of the kinds.
type (
	// Instances reads and writes VirtualMachineInstances.
	Instances = Objects[*vmi.VirtualMachineInstance, *vmi.VirtualMachineInstanceList]
	// VirtualMachines reads and writes VirtualMachines.
	VirtualMachines = Objects[*vmi.VirtualMachine, *vmi.VirtualMachineList]
	// Migrations reads and writes VirtualMachineInstanceMigrations.
	Migrations = Objects[*vmi.VirtualMachineInstanceMigration, *vmi.VirtualMachineInstanceMigrationList]
	// KubeVirts reads and writes the configuration of Podvisor.
	KubeVirts = Objects[*vmi.KubeVirt, *vmi.KubeVirtList]
)

// objects is client-go's own client at one of our types.
type objects[T Object, L runtime.Object] struct {
	*gentype.ClientWithList[T, L]
	kind schema.GroupVersionKind
}

// Apply sends what is set in o.
func (c objects[T, L]) Apply(ctx context.Context, o T, opts metav1.ApplyOptions) (T, error) {
	data, err := configuration(c.kind, o)
	if err != nil {
		return nil, err
	}
	return c.Patch(ctx, o.GetName(), types.ApplyPatchType, data, opts.ToPatchOptions())
}
