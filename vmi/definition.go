package vmi

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object is an object of any kind of the API: a pointer to a struct with
// metadata.
//
// +kubebuilder:object:generate=false
type Object interface {
	runtime.Object
	metav1.Object
}

// Definition is what an API server knows of a kind beside its schema, and how its
// objects are made in Go. It is the kind's row wherever all kinds are served,
// cached or checked alike. Those of package vmi are generated from the markers
// of its types; any other kind's is made by [Define]. A Definition is not
// changed once it is in use.
//
// +kubebuilder:object:generate=false
type Definition struct {
	schema.GroupVersionKind
	// Plural is the name of the resource, as in REST paths.
	Plural string
	// ShortNames are what users may write for Plural, and Categories the groups of
	// resources that the kind is in, as "all". Nil: none.
	ShortNames, Categories []string
	// ClusterScoped says that the objects are in no namespace. Default: false.
	ClusterScoped bool
	// Status says that the status is written apart from the rest, as the
	// subresource status. Default: false.
	Status bool
	// Scale says what the subresource scale shows. Nil: there is none.
	Scale *ScaleFields
	// Selectable are the fields by which objects are selected, beside name and
	// namespace: as in "status.nodeName". Nil: none.
	Selectable []string
	// ListKeys are the lists whose elements are merged one by one when they are
	// applied, with the fields that identify an element, or none if the elements
	// are plain values. In a path, [] marks the elements of a list and {} the values
	// of a map. All other lists are replaced as a whole.
	ListKeys map[string][]string
	// New returns a new object, and NewList a new list. [Define] sets both.
	New     func() Object
	NewList func() runtime.Object
}

// ScaleFields are the fields that the subresource scale reads and writes, as
// paths.
//
// +kubebuilder:object:generate=false
type ScaleFields struct {
	// Spec is the number of replicas that is desired, Status the number observed.
	Spec, Status string
	// Selector selects the pods, as text. Empty: the scale has no selector.
	Selector string
}

// DefinitionOf is the definition of the kind with objects T and lists L.
//
// +kubebuilder:object:generate=false
type DefinitionOf[T Object, L runtime.Object] struct{ Definition }

// Define completes d for the kind with the Go types T and L, as in
// Define[Widget, WidgetList](d). The pointers PT and PL follow from these.
func Define[T, L any, PT interface {
	*T
	Object
}, PL interface {
	*L
	runtime.Object
}](d Definition) DefinitionOf[PT, PL] {
	d.New = func() Object { return PT(new(T)) }
	d.NewList = func() runtime.Object { return PL(new(L)) }
	return DefinitionOf[PT, PL]{d}
}

// Untyped is d for code that treats all kinds alike.
func (d Definition) Untyped() DefinitionOf[Object, runtime.Object] {
	return DefinitionOf[Object, runtime.Object]{d}
}

// Resource is the resource of the kind.
func (d Definition) Resource() schema.GroupVersionResource {
	return d.GroupVersion().WithResource(d.Plural)
}

// AddToScheme registers the kind and its list in s.
func (d Definition) AddToScheme(s *runtime.Scheme) {
	s.AddKnownTypeWithName(d.GroupVersionKind, d.New())
	s.AddKnownTypeWithName(d.GroupVersion().WithKind(d.Kind+"List"), d.NewList())
	metav1.AddToGroupVersion(s, d.GroupVersion())
}
