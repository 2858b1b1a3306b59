package fake

import (
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/podvisor/podvisor/vmi"
)

// key names an object.
type key struct {
	kind            *vmi.Definition
	namespace, name string
}

// resource is the resource for errors.
func (k key) resource() schema.GroupResource { return k.kind.Resource().GroupResource() }

// event is a change of an object: what it was, and what it is. It was nil before
// it was created, and is nil once it is deleted.
type event struct {
	kind          *vmi.Definition
	version       int64
	before, after *unstructured.Unstructured
}

// store holds the objects and how they came to be what they are. What is in it is
// never changed, only replaced.
type store struct {
	version int64
	objects map[key]*unstructured.Unstructured
	events  []event
	// forgotten is the version up to which there are no events any more.
	forgotten int64
	// changed is closed at the next event, and ended when all watches must end.
	changed, ended chan struct{}
}

func newStore() store {
	// A version of 0 would mean any.
	return store{version: 1, objects: map[key]*unstructured.Unstructured{}, changed: make(chan struct{}), ended: make(chan struct{})}
}

func keyOf(kind *vmi.Definition, o *unstructured.Unstructured) key {
	return key{kind, o.GetNamespace(), o.GetName()}
}

// get returns the object, or NotFound.
func (s *store) get(k key) (*unstructured.Unstructured, error) {
	o := s.objects[k]
	if o == nil {
		return nil, apierrors.NewNotFound(k.resource(), k.name)
	}
	return o, nil
}

// list returns the objects of the kind in the namespace, or in all of them,
// in the order of their names.
func (s *store) list(kind *vmi.Definition, namespace string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for k, o := range s.objects {
		if k.kind == kind && (namespace == "" || k.namespace == namespace) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	return out
}

// create stores a new object and completes its metadata.
func (s *store) create(kind *vmi.Definition, o *unstructured.Unstructured) error {
	if o.GetName() == "" && o.GetGenerateName() != "" {
		o.SetName(o.GetGenerateName() + rand.String(5))
	}
	if o.GetName() == "" {
		return apierrors.NewBadRequest("name or generateName is required")
	}
	k := keyOf(kind, o)
	if s.objects[k] != nil {
		return apierrors.NewAlreadyExists(k.resource(), o.GetName())
	}
	if o.GetUID() == "" {
		o.SetUID(uuid.NewUUID())
	}
	if t := o.GetCreationTimestamp(); t.IsZero() {
		o.SetCreationTimestamp(metav1.NewTime(time.Now()))
	}
	if o.GetGeneration() == 0 {
		o.SetGeneration(1)
	}
	s.put(k, nil, o)
	return nil
}

// put replaces the object and wakes the watches. Nil as the new object deletes it.
func (s *store) put(k key, before, after *unstructured.Unstructured) {
	s.version++
	v := strconv.FormatInt(s.version, 10)
	if after == nil {
		delete(s.objects, k)
		before = before.DeepCopy()
		before.SetResourceVersion(v)
	} else {
		after.SetResourceVersion(v)
		s.objects[k] = after
	}
	s.events = append(s.events, event{k.kind, s.version, before, after})
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *store) forget() {
	s.events = nil
	s.forgotten = s.version
}

func (s *store) disconnect() {
	close(s.ended)
	s.ended = make(chan struct{})
}

// since returns the events after the version.
func (s *store) since(version int64) []event {
	i, _ := slices.BinarySearchFunc(s.events, version+1, func(e event, v int64) int { return int(e.version - v) })
	return s.events[i:]
}
