package fake

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Why a write is a conflict.
var (
	errOtherUID = errors.New("the UID is not that of the object")
	errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")
)

// replace makes the object what is in changed, as far as a write to the
// subresource may, and returns what it is then.
func (s *store) replace(k key, subresource string, live, changed *unstructured.Unstructured, dryRun bool) (*unstructured.Unstructured, error) {
	if err := precondition(k, live, string(changed.GetUID()), changed.GetResourceVersion()); err != nil {
		return nil, err
	}
	o := changed.DeepCopy()
	if k.kind.Status {
		o = permitted(subresource, live, changed)
	}
	keep(live, o)
	if more := added(live.GetFinalizers(), o.GetFinalizers()); live.GetDeletionTimestamp() != nil && len(more) > 0 {
		return nil, invalid(k, field.Forbidden(field.NewPath("metadata", "finalizers"),
			fmt.Sprintf("no new finalizers can be added if the object is being deleted, found new finalizers %q", more)))
	}
	if equality.Semantic.DeepEqual(live.Object, o.Object) {
		return live, nil
	}
	if !equality.Semantic.DeepEqual(k.content(live), k.content(o)) {
		o.SetGeneration(live.GetGeneration() + 1)
	}
	switch {
	case dryRun:
	case o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0:
		s.put(k, o, nil)
	default:
		s.put(k, live, o)
	}
	return o, nil
}

// precondition compares the UID and version that the writer asks for, if it
// does, with those of the object.
func precondition(k key, live *unstructured.Unstructured, uid, version string) error {
	switch {
	case uid != "" && uid != string(live.GetUID()):
		return apierrors.NewConflict(k.resource(), k.name, errOtherUID)
	case version != "" && version != live.GetResourceVersion():
		return apierrors.NewConflict(k.resource(), k.name, errModified)
	}
	return nil
}

// added are the elements that were not there before.
func added(before, after []string) []string {
	return slices.DeleteFunc(slices.Clone(after), func(s string) bool { return slices.Contains(before, s) })
}

// sameUID refuses another UID from a writer that names no other version, which
// would be a conflict first.
func sameUID(k key, live, changed *unstructured.Unstructured) error {
	if u := changed.GetUID(); u == live.GetUID() || changed.GetResourceVersion() != live.GetResourceVersion() {
		return nil
	}
	return invalid(k, field.Invalid(field.NewPath("metadata", "uid"), changed.GetUID(), "field is immutable"))
}

// invalid is the error of an object with this fault.
func invalid(k key, fault *field.Error) error {
	return apierrors.NewInvalid(k.kind.GroupKind(), k.name, field.ErrorList{fault})
}

// permitted is what a write to the subresource makes of the object, of a kind
// whose status is written apart.
func permitted(subresource string, live, changed *unstructured.Unstructured) *unstructured.Unstructured {
	if subresource == "status" {
		o := live.DeepCopy()
		setOrRemove(o.Object, "status", changed.DeepCopy().Object["status"])
		o.SetManagedFields(changed.GetManagedFields())
		return o
	}
	o := changed.DeepCopy()
	setOrRemove(o.Object, "status", live.DeepCopy().Object["status"])
	return o
}

// keep gives o the metadata of live that no write changes.
func keep(live, o *unstructured.Unstructured) {
	o.SetGroupVersionKind(live.GroupVersionKind())
	o.SetNamespace(live.GetNamespace())
	o.SetName(live.GetName())
	o.SetUID(live.GetUID())
	o.SetResourceVersion(live.GetResourceVersion())
	o.SetGeneration(live.GetGeneration())
	o.SetCreationTimestamp(live.GetCreationTimestamp())
	o.SetDeletionTimestamp(live.GetDeletionTimestamp())
	o.SetDeletionGracePeriodSeconds(live.GetDeletionGracePeriodSeconds())
}

func setOrRemove(m map[string]any, field string, v any) {
	if v == nil {
		delete(m, field)
		return
	}
	m[field] = v
}

// content is what the generation counts the changes of.
func (k key) content(o *unstructured.Unstructured) map[string]any {
	out := maps.Clone(o.Object)
	delete(out, "metadata")
	if k.kind.Status {
		delete(out, "status")
	}
	return out
}

// remove deletes the object, or marks it as being deleted if it has finalizers.
func (s *store) remove(k key, live *unstructured.Unstructured, opts metav1.DeleteOptions) error {
	if p := opts.Preconditions; p != nil {
		if err := precondition(k, live, deref(p.UID), deref(p.ResourceVersion)); err != nil {
			return err
		}
	}
	switch {
	case len(opts.DryRun) > 0:
	case len(live.GetFinalizers()) == 0:
		s.put(k, live, nil)
	case live.GetDeletionTimestamp() == nil:
		o := live.DeepCopy()
		now := metav1.NewTime(time.Now())
		o.SetDeletionTimestamp(&now)
		o.SetDeletionGracePeriodSeconds(new(int64))
		o.SetGeneration(live.GetGeneration() + 1)
		s.put(k, live, o)
	}
	return nil
}

func deref[T ~string](p *T) string {
	if p == nil {
		return ""
	}
	return string(*p)
}
