package client

import (
	"context"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

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

// objects are the objects of one kind in one namespace. client-go's package
// gentype would do, but it brings its fakes along and what they are made of:
// twenty modules in every program that imports us.
type objects[T Object, L runtime.Object] struct {
	rest      rest.Interface
	codec     runtime.ParameterCodec
	kind      schema.GroupVersionKind
	resource  string
	namespace string
	list      func() L
}

// on addresses the request to all objects, or to the one of this name and its
// subresource, with the options as parameters.
func (c objects[T, L]) on(r *rest.Request, opts runtime.Object, name string, subresources ...string) *rest.Request {
	r = r.NamespaceIfScoped(c.namespace, c.namespace != "").Resource(c.resource).SubResource(subresources...)
	if name != "" {
		r = r.Name(name)
	}
	return r.VersionedParams(opts, c.codec)
}

// object sends the request and decodes the one object of the answer.
func (c objects[T, L]) object(ctx context.Context, r *rest.Request) (T, error) {
	o := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
	return o, r.Do(ctx).Into(o)
}

func (c objects[T, L]) Create(ctx context.Context, o T, opts metav1.CreateOptions) (T, error) {
	return c.object(ctx, c.on(c.rest.Post(), &opts, "").Body(o))
}

func (c objects[T, L]) Update(ctx context.Context, o T, opts metav1.UpdateOptions) (T, error) {
	return c.object(ctx, c.on(c.rest.Put(), &opts, o.GetName()).Body(o))
}

func (c objects[T, L]) UpdateStatus(ctx context.Context, o T, opts metav1.UpdateOptions) (T, error) {
	return c.object(ctx, c.on(c.rest.Put(), &opts, o.GetName(), "status").Body(o))
}

func (c objects[T, L]) Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error) {
	return c.object(ctx, c.on(c.rest.Get(), &opts, name))
}

func (c objects[T, L]) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error) {
	return c.object(ctx, c.on(c.rest.Patch(pt), &opts, name, subresources...).Body(data))
}

func (c objects[T, L]) Apply(ctx context.Context, o T, opts metav1.ApplyOptions) (T, error) {
	data, err := configuration(c.kind, o)
	if err != nil {
		return nil, err
	}
	return c.Patch(ctx, o.GetName(), types.ApplyPatchType, data, opts.ToPatchOptions())
}

func (c objects[T, L]) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	return c.on(c.rest.Delete(), &metav1.ListOptions{}, name).Body(&opts).Do(ctx).Error()
}

func (c objects[T, L]) DeleteCollection(ctx context.Context, opts metav1.DeleteOptions, which metav1.ListOptions) error {
	return c.on(c.rest.Delete(), &which, "").Timeout(timeout(which)).Body(&opts).Do(ctx).Error()
}

func (c objects[T, L]) List(ctx context.Context, opts metav1.ListOptions) (L, error) {
	l := c.list()
	return l, c.on(c.rest.Get(), &opts, "").Timeout(timeout(opts)).Do(ctx).Into(l)
}

func (c objects[T, L]) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	opts.Watch = true
	return c.on(c.rest.Get(), &opts, "").Timeout(timeout(opts)).Watch(ctx)
}

// timeout is the time that the options give the API server, or 0 for any.
func timeout(o metav1.ListOptions) time.Duration {
	if o.TimeoutSeconds == nil {
		return 0
	}
	return time.Duration(*o.TimeoutSeconds) * time.Second
}
