package client

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/vmi"
)

// Objects reads and writes the objects T of one kind in one namespace; made
// without a namespace, it lists and watches those in all. L is their list. It is made by
// [Of] and safe for concurrent use.
//
// An object may be stored that T cannot hold: see [vmi.Unreadable] for what of it
// there is. It is returned, alone or in a list with all others, together with an error that
// wraps [vmi.ErrUnreadable] and names the object and the field; a watch sends it as
// it sends any other. A write whose error wraps it was done if the object is not nil:
// the answer could not be decoded. Create, Update and UpdateStatus of such an object are
// refused with this error, and with nil in place of the object.
//
// client-go's package gentype would do, but it brings its fakes along and what they are
// made of: twenty modules in every program that imports us.
type Objects[T vmi.Object, L runtime.Object] struct {
	kindClient
	definition vmi.DefinitionOf[T, L]
	namespace  string
}

// all addresses the request to all objects, with the options as parameters.
func (c Objects[T, L]) all(r *rest.Request, opts runtime.Object) *rest.Request {
	return r.NamespaceIfScoped(c.namespace, c.namespace != "").Resource(c.definition.Plural).VersionedParams(opts, c.codec)
}

// one addresses the request to the object of this name or to its subresource. An
// empty name is an error of the request.
func (c Objects[T, L]) one(r *rest.Request, opts runtime.Object, name string, subresources ...string) *rest.Request {
	return c.all(r, opts).Name(name).SubResource(subresources...)
}

// object sends the request and decodes the one object of the answer.
func (c Objects[T, L]) object(ctx context.Context, r *rest.Request) (T, error) {
	o := c.definition.New().(T)
	if err := r.Do(ctx).Into(o); err != nil {
		return o, err
	}
	return o, readable(c.definition.Kind, o)
}

// written sends the request with o as its body, and decodes the answer.
func (c Objects[T, L]) written(ctx context.Context, r *rest.Request, o T) (T, error) {
	if err := writable(c.definition.Kind, o); err != nil {
		return none[T](), err
	}
	return c.object(ctx, r.Body(o))
}

// Create creates the object. Its status is not stored.
func (c Objects[T, L]) Create(ctx context.Context, o T, opts metav1.CreateOptions) (T, error) {
	return c.written(ctx, c.all(c.rest.Post(), &opts), o)
}

// Update replaces the object, except for its status. It is a conflict if the object was
// written since o was read.
func (c Objects[T, L]) Update(ctx context.Context, o T, opts metav1.UpdateOptions) (T, error) {
	return c.written(ctx, c.one(c.rest.Put(), &opts, o.GetName()), o)
}

// UpdateStatus replaces the status of the object, and nothing else.
func (c Objects[T, L]) UpdateStatus(ctx context.Context, o T, opts metav1.UpdateOptions) (T, error) {
	return c.written(ctx, c.one(c.rest.Put(), &opts, o.GetName(), "status"), o)
}

// Get returns the object of this name.
func (c Objects[T, L]) Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error) {
	return c.object(ctx, c.one(c.rest.Get(), &opts, name))
}

// Patch changes what the patch names, of the object or of its subresource.
func (c Objects[T, L]) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error) {
	return c.object(ctx, c.one(c.rest.Patch(pt), &opts, name, subresources...).Body(data))
}

// Delete deletes the object of this name.
func (c Objects[T, L]) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	return c.one(c.rest.Delete(), &metav1.ListOptions{}, name).Body(&opts).Do(ctx).Error()
}

// DeleteCollection deletes the objects that which selects.
func (c Objects[T, L]) DeleteCollection(ctx context.Context, opts metav1.DeleteOptions, which metav1.ListOptions) error {
	return c.all(c.rest.Delete(), &which).Timeout(timeout(which)).Body(&opts).Do(ctx).Error()
}

// List returns the objects that the options select.
func (c Objects[T, L]) List(ctx context.Context, opts metav1.ListOptions) (L, error) {
	l := c.definition.NewList().(L)
	if err := c.all(c.rest.Get(), &opts).Timeout(timeout(opts)).Do(ctx).Into(l); err != nil {
		return l, err
	}
	return l, listReadable(c.definition.Kind, l)
}

// Watch sends the changes of the objects that the options select.
func (c Objects[T, L]) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	opts.Watch = true
	return c.all(c.rest.Get(), &opts).Timeout(timeout(opts)).Watch(ctx)
}

// none is no object.
func none[T vmi.Object]() (no T) { return no }

// isNone says that o is no object.
func isNone[T vmi.Object](o T) bool { return any(o) == any(none[T]()) }

// timeout is the time that the options give the API server, or 0 for any.
func timeout(o metav1.ListOptions) time.Duration {
	if o.TimeoutSeconds == nil {
		return 0
	}
	return time.Duration(*o.TimeoutSeconds) * time.Second
}

// Definition is the definition of the kind.
func (c Objects[T, L]) Definition() vmi.Definition { return c.definition.Definition }
