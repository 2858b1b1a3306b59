package vmitest

import (
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// Recorder keeps events. It is a record.EventRecorder of client-go, and safe for concurrent
// use. The zero value has none.
type Recorder struct {
	mu     sync.Mutex
	events []corev1.Event
}

// Event keeps an event about the object, with its kind, namespace, name and UID.
func (r *Recorder) Event(o runtime.Object, kind, reason, message string) {
	e := corev1.Event{Type: kind, Reason: reason, Message: message, Count: 1}
	e.InvolvedObject.APIVersion, e.InvolvedObject.Kind = o.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	if m, err := meta.Accessor(o); err == nil {
		e.InvolvedObject.Namespace, e.InvolvedObject.Name, e.InvolvedObject.UID = m.GetNamespace(), m.GetName(), m.GetUID()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// Eventf keeps an event with a message as fmt.Sprintf makes it.
func (r *Recorder) Eventf(o runtime.Object, kind, reason, format string, args ...any) {
	r.Event(o, kind, reason, fmt.Sprintf(format, args...))
}

// AnnotatedEventf is Eventf. The annotations are not kept.
func (r *Recorder) AnnotatedEventf(o runtime.Object, _ map[string]string, kind, reason, format string, args ...any) {
	r.Eventf(o, kind, reason, format, args...)
}

// Events are the events so far, in their order.
func (r *Recorder) Events() []corev1.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}
