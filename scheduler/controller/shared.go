package controller

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

// mostShared is how many values a [shared] has at most. A cluster has fewer words that are
// in many objects, such as names of nodes, images, labels and reasons.
const mostShared = 4096

// shared are values that many objects in the caches have, each of them once. The zero value
// is empty. It is safe for concurrent use; the values must not be changed.
type shared[K comparable, V any] struct {
	mu sync.Mutex
	of map[K]V
}

// get is the value of the key, which is made if it is not there. When there are too many,
// all are forgotten: objects keep theirs.
func (s *shared[K, V]) get(key K, make func() V) V {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.of[key]; ok {
		return v
	}
	if len(s.of) >= mostShared || s.of == nil {
		s.of = map[K]V{}
	}
	v := make()
	s.of[key] = v
	return v
}

// words are texts that many objects have.
type words struct{ shared[string, string] }

// longestWord is the length of the longest text that is shared.
const longestWord = 128

// share makes the texts those that others have.
func share[S ~string](w *words, texts ...*S) {
	for _, t := range texts {
		if s := string(*t); s != "" && len(s) <= longestWord {
			*t = S(w.get(s, func() string { return s }))
		}
	}
}

// entries shares the keys of the map, and the values where all is true.
func (w *words) entries(m map[string]string, all func(key string) bool) map[string]string {
	if len(m) == 0 {
		return m
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		share(w, &k)
		if all(k) {
			share(w, &v)
		}
		out[k] = v
	}
	return out
}

// metadata shares what objects of a namespace and of a kind of owner have in their metadata.
func (w *words) metadata(o metav1.Object) {
	namespace := o.GetNamespace()
	share(w, &namespace)
	o.SetNamespace(namespace)
	for i := range o.GetOwnerReferences() {
		r := &o.GetOwnerReferences()[i]
		share(w, &r.APIVersion, &r.Kind)
	}
	for i := range o.GetFinalizers() {
		share(w, &o.GetFinalizers()[i])
	}
	// Of the annotations only the keys: what is in them is of one object.
	o.SetLabels(w.entries(o.GetLabels(), func(key string) bool { return key != vmi.CreatedByLabel }))
	o.SetAnnotations(w.entries(o.GetAnnotations(), func(string) bool { return false }))
}

// conditions shares the words of the conditions of VMIs and VMs.
func (w *words) conditions(all []vmi.Condition) {
	for i := range all {
		c := &all[i]
		share(w, &c.Type)
		share(w, &c.Status)
		share(w, &c.Reason, &c.Message)
	}
}

// pod shares the words of a pod of which the rest was dropped.
func (w *words) pod(p *corev1.Pod) {
	w.metadata(p)
	share(w, &p.Spec.NodeName, &p.Spec.SchedulerName, &p.Status.Reason)
	share(w, &p.Status.Phase)
	share(w, &p.Status.QOSClass)
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		share(w, &c.Type)
		share(w, &c.Status)
		share(w, &c.Reason, &c.Message)
	}
	for _, all := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range all {
			share(w, &all[i].Name, &all[i].Image)
			if t := all[i].State.Terminated; t != nil {
				share(w, &t.Reason)
			}
		}
	}
}

// instance shares the words of a VMI that was handed over.
func (w *words) instance(v *vmi.VirtualMachineInstance) {
	w.metadata(v)
	s := &v.Status
	w.conditions(s.Conditions)
	share(w, &s.Phase)
	share(w, &s.Reason, &s.NodeName, &s.LauncherContainerImageVersion)
	for i := range s.PhaseTransitionTimestamps {
		share(w, &s.PhaseTransitionTimestamps[i].Phase)
	}
	for uid, node := range s.ActivePods {
		share(w, &node)
		s.ActivePods[uid] = node
	}
	if s.Machine != nil {
		share(w, &s.Machine.Type)
	}
	for i := range s.Interfaces {
		share(w, &s.Interfaces[i].Name, &s.Interfaces[i].InterfaceName)
	}
	for i := range v.Spec.Networks {
		share(w, &v.Spec.Networks[i].Name)
	}
	for i := range v.Spec.Domain.Devices.Interfaces {
		share(w, &v.Spec.Domain.Devices.Interfaces[i].Name)
		share(w, &v.Spec.Domain.Devices.Interfaces[i].Model)
	}
}
