package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// ApplyConfiguration says which fields of an object are to have which values. Those of the
// kinds of package vmi are in package vmi/applyconfiguration; those that client-go and
// controller-gen generate for other kinds are ApplyConfigurations too.
type ApplyConfiguration interface {
	runtime.ApplyConfiguration
	GetKind() *string
	GetAPIVersion() *string
	GetName() *string
}

// Apply gives the fields that are set in the configuration these values, and creates the
// object if it does not exist (server-side apply). opts.FieldManager names the owner of
// the fields and is required: a field that the same manager applied before and that is not
// set any more is removed, unless another manager owns it too. A field that another manager
// owns with another value is a conflict, unless opts.Force is set.
//
// The status is not applied: see ApplyStatus. For a configuration as JSON use Patch with
// types.ApplyPatchType.
func (c Objects[T, L]) Apply(ctx context.Context, a ApplyConfiguration, opts metav1.ApplyOptions) (T, error) {
	return c.apply(ctx, a, opts)
}

// ApplyStatus is Apply for the fields of the status, and for no others. The object must
// exist.
func (c Objects[T, L]) ApplyStatus(ctx context.Context, a ApplyConfiguration, opts metav1.ApplyOptions) (T, error) {
	return c.apply(ctx, a, opts, "status")
}

func (c Objects[T, L]) apply(ctx context.Context, a ApplyConfiguration, opts metav1.ApplyOptions, subresources ...string) (T, error) {
	name, err := c.named(a)
	if err != nil {
		return none[T](), fmt.Errorf("apply %s: %w", c.definition.Kind, err)
	}
	data, err := json.Marshal(a)
	if err != nil {
		return none[T](), fmt.Errorf("encode the configuration of %s %s: %w", c.definition.Kind, name, err)
	}
	return c.Patch(ctx, name, types.ApplyPatchType, data, opts.ToPatchOptions(), subresources...)
}

// named is the name of the object that the configuration is for, of this kind.
func (c Objects[T, L]) named(a ApplyConfiguration) (string, error) {
	if a == nil {
		return "", errors.New("the configuration is nil")
	}
	if kind, version := deref(a.GetKind()), deref(a.GetAPIVersion()); kind != c.definition.Kind || version != c.definition.GroupVersion().String() {
		return "", fmt.Errorf("the configuration is of the kind %q and apiVersion %q, and not of %q and %q", kind, version, c.definition.Kind, c.definition.GroupVersion())
	}
	if name := deref(a.GetName()); name != "" {
		return name, nil
	}
	return "", errors.New("the configuration has no name")
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
