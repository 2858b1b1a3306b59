package fake

import (
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
)

// apply merges the configuration of the request into the object, or creates it.
func (s *Server) apply(q request) (any, int, error) {
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(q.body, &o.Object); err != nil {
		return nil, 0, apierrors.NewBadRequest(err.Error())
	}
	if q.URL.Query().Get("fieldManager") == "" {
		return nil, 0, apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "PatchOptions"}, "",
			field.ErrorList{field.Required(field.NewPath("fieldManager"), "is required for apply patch")})
	}
	if o.GroupVersionKind() != q.kind.GroupVersionKind || len(o.GetManagedFields()) > 0 || q.subresource == "scale" {
		return nil, 0, apierrors.NewBadRequest("the configuration must have the apiVersion and kind of the resource and no managedFields")
	}
	if o.GetNamespace() == "" {
		o.SetNamespace(q.namespace)
	}
	if err := q.names(o); err != nil {
		return nil, 0, err
	}
	if raw, err := o.MarshalJSON(); err != nil {
		return nil, 0, apierrors.NewBadRequest(err.Error())
	} else if err := q.strict(raw); err != nil {
		return nil, 0, err
	}
	live, err := s.get(q.key)
	if err != nil && q.subresource != "" {
		return nil, 0, err
	}
	merged, err := s.managers.apply(q, live, o)
	if err != nil {
		return nil, 0, err
	}
	if live == nil {
		out, err := s.add(q, merged)
		return out, http.StatusCreated, err
	}
	if o.GetUID() != "" {
		merged.SetUID(o.GetUID())
	}
	merged.SetResourceVersion(o.GetResourceVersion())
	out, err := s.replace(q.key, q.subresource, live, merged, q.dryRun())
	if err != nil {
		return nil, 0, err
	}
	return out.Object, http.StatusOK, nil
}

// managers keep the owners of fields, by kind and subresource. Owners are kept
// from the first time that something is applied to an object: before that, no
// write is in conflict.
type managers map[managed]*managedfields.FieldManager

// managed is what a manager keeps.
type managed struct {
	kind        *vmi.Definition
	subresource string
}

// of returns the manager for the request.
func (m *managers) of(q request) (*managedfields.FieldManager, error) {
	is := managed{q.kind, q.subresource}
	if f := (*m)[is]; f != nil {
		return f, nil
	}
	status := fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	reset := fieldpath.NewExcludeSetFilter(status)
	switch {
	case !q.kind.Status:
		reset = fieldpath.NewExcludeSetFilter(fieldpath.NewSet())
	case q.subresource == "status":
		reset = fieldpath.NewIncludeMatcherFilter(fieldpath.MakePrefixMatcherOrDie("status"))
	}
	gv := q.kind.GroupVersion()
	f, err := managedfields.NewDefaultFieldManager(converter{schemaOf(*q.kind)}, same{}, same{}, same{}, q.kind.GroupVersionKind, gv, q.subresource,
		map[fieldpath.APIVersion]fieldpath.Filter{fieldpath.APIVersion(gv.String()): reset})
	if err != nil {
		return nil, err
	}
	if *m == nil {
		*m = managers{}
	}
	(*m)[is] = f
	return f, nil
}

// apply is live with the configuration merged in.
func (m *managers) apply(q request, live, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	f, err := m.of(q)
	if err != nil {
		return nil, err
	}
	if live == nil {
		live = &unstructured.Unstructured{Object: map[string]any{}}
		live.SetGroupVersionKind(q.kind.GroupVersionKind)
	}
	force, _ := strconv.ParseBool(q.URL.Query().Get("force"))
	out, err := f.Apply(live.DeepCopy(), o, q.manager(), force)
	if err != nil {
		return nil, err
	}
	return out.(*unstructured.Unstructured), nil
}

// update is changed with the ownership of what it changes.
func (m *managers) update(q request, live, changed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if len(live.GetManagedFields()) == 0 {
		return changed, nil
	}
	f, err := m.of(q)
	if err != nil {
		return nil, err
	}
	return f.UpdateNoErrors(live.DeepCopy(), changed.DeepCopy(), q.manager()).(*unstructured.Unstructured), nil
}

// converter knows the schema of one kind.
type converter struct{ typed.ParseableType }

func (c converter) ObjectToTyped(o runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	return c.FromUnstructured(o.(*unstructured.Unstructured).Object, opts...)
}

func (c converter) TypedToObject(v *typed.TypedValue) (runtime.Object, error) {
	m, _ := v.AsValue().Unstructured().(map[string]any)
	return &unstructured.Unstructured{Object: m}, nil
}

// same converts and defaults nothing: there is one version.
type same struct{}

func (same) Default(runtime.Object) {}

func (same) New(k schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(k)
	return u, nil
}

func (same) Convert(in, out, _ any) error {
	out.(*unstructured.Unstructured).Object = in.(*unstructured.Unstructured).Object
	return nil
}

func (same) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (same) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}
