package fake

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/podvisor/podvisor/vmi"
)

// shown is the object as its subresource shows it.
func (s *Server) shown(q request) (any, error) {
	live, err := s.get(q.key)
	if err != nil {
		return nil, err
	}
	return view(q, live)
}

// view is the object as the subresource of the request shows it.
func view(q request, o *unstructured.Unstructured) (any, error) {
	if q.subresource != "scale" {
		return o.Object, nil
	}
	fields := q.kind.Scale
	desired, found, err := unstructured.NestedInt64(o.Object, steps(fields.Spec)...)
	if err != nil {
		return nil, err
	}
	if !found {
		desired = 1 // the default of every kind of package vmi
	}
	observed, _, err := unstructured.NestedInt64(o.Object, steps(fields.Status)...)
	if err != nil {
		return nil, err
	}
	selector, _, err := unstructured.NestedString(o.Object, steps(fields.Selector)...)
	return map[string]any{
		"apiVersion": "autoscaling/v1",
		"kind":       "Scale",
		"metadata": metav1.ObjectMeta{
			Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), CreationTimestamp: o.GetCreationTimestamp(),
		},
		"spec":   map[string]any{"replicas": desired},
		"status": map[string]any{"replicas": observed, "selector": selector},
	}, err
}

// steps are the names on the path of a field.
func steps(path string) []string { return strings.Split(path, ".") }

// update replaces the object, or what its subresource shows.
func (s *Server) update(q request) (any, error) {
	live, err := s.get(q.key)
	if err != nil {
		return nil, err
	}
	o, err := q.object()
	if err != nil {
		return nil, err
	}
	if err := q.names(o); err != nil {
		return nil, err
	}
	return s.write(q, live, o)
}

// patch changes what the patch names. Strategic merge patches are not for custom
// resources.
func (s *Server) patch(q request) (any, error) {
	live, err := s.get(q.key)
	if err != nil {
		return nil, err
	}
	now, err := view(q, live)
	if err != nil {
		return nil, err
	}
	from, err := json.Marshal(now)
	if err != nil {
		return nil, err
	}
	to, err := patched(from, q)
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(to); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if err := errors.Join(q.names(o), q.strict(to)); err != nil {
		return nil, err
	}
	if err := sameUID(q.key, live, o); err != nil {
		return nil, err
	}
	return s.write(q, live, o)
}

func patched(from []byte, q request) ([]byte, error) {
	var to []byte
	var err error
	switch t := types.PatchType(q.Header.Get("Content-Type")); t {
	case types.MergePatchType:
		to, err = jsonpatch.MergePatch(from, q.body)
	case types.JSONPatchType:
		var p jsonpatch.Patch
		if p, err = jsonpatch.DecodePatch(q.body); err == nil {
			if to, err = p.Apply(from); err != nil {
				return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", q.resource(), q.name, err.Error(), 0, false)
			}
		}
	default:
		return nil, unsupported(string(t), string(types.JSONPatchType), string(types.MergePatchType), string(types.ApplyPatchType))
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return to, nil
}

// write makes the object what it is in changed, as the subresource shows it.
func (s *Server) write(q request, live, changed *unstructured.Unstructured) (any, error) {
	if q.subresource == "scale" {
		o, err := scaled(q.kind.Scale, live, changed)
		if err != nil {
			return nil, err
		}
		changed = o
	} else if changed.GetResourceVersion() == "" {
		return nil, invalid(q.key, field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"))
	}
	changed, err := s.managers.update(q, live, changed)
	if err != nil {
		return nil, err
	}
	o, err := s.replace(q.key, q.subresource, live, changed, q.dryRun())
	if err != nil {
		return nil, err
	}
	return view(q, o)
}

// scaled is the object with the number of replicas that the scale asks for.
func scaled(fields *vmi.ScaleFields, live, scale *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	n, _, err := unstructured.NestedInt64(scale.Object, "spec", "replicas")
	if err != nil || n < 0 {
		return nil, apierrors.NewBadRequest("spec.replicas must be a number from 0, and is " + strconv.FormatInt(n, 10))
	}
	o := live.DeepCopy()
	o.SetUID(scale.GetUID())
	o.SetResourceVersion(scale.GetResourceVersion())
	return o, unstructured.SetNestedField(o.Object, n, steps(fields.Spec)...)
}
