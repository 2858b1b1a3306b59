package controller

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
)

// Limits of what the events of silent pods cost the API server, which has to look
// through all events of a namespace for those of a pod.
const (
	readsPerSecond = 1
	readsAtOnce    = 10
	mostEvents     = 100
	// readWait is longer than a silent pod waits that was refused a read.
	readWait = 5 * time.Second
)

// silences are what is known of pods that wait and do not say why, by their UIDs. It
// is lost with the process, and is found anew then.
type silences struct {
	mu     sync.Mutex
	known  map[types.UID]instance.Silence
	budget *budget
}

func newSilences() *silences {
	return &silences{known: map[types.UID]instance.Silence{}, budget: newBudget(readsPerSecond, readsAtOnce, readWait)}
}

// get is what is known of the pod, which is silent since now if nothing is.
func (s *silences) get(pod types.UID, now time.Time) instance.Silence {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.known[pod]; !ok {
		s.known[pod] = instance.Silence{Since: now}
	}
	return s.known[pod]
}

func (s *silences) put(pod types.UID, known instance.Silence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[pod] = known
}

// forget drops what is known of a pod that is not silent any more.
func (s *silences) forget(pod types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, pod)
}

// silence is what is known of the VMI's pod, if it is silent. Its events are read when
// it is time. That they cannot be read stops nothing else: the known ones count on.
func (c *Controller) silence(ctx context.Context, v *vmi.VirtualMachineInstance, p *corev1.Pod) *instance.Silence {
	if p == nil {
		return nil
	}
	if !instance.Silent(v, p) {
		c.silences.forget(p.UID)
		return nil
	}
	now := c.cfg.Now()
	s := c.silences.get(p.UID, now)
	if now.Before(s.Due()) || !c.silences.budget.accept(p.Namespace, now) {
		return &s
	}
	events, err := c.cfg.Kube.CoreV1().Events(p.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", string(p.UID)).String(), Limit: mostEvents,
	})
	s.Read = now
	if err != nil {
		c.log.Warn("read the events of a pod", "pod", p.Namespace+"/"+p.Name, "err", err)
	} else {
		s.Events = keepEvents(events.Items)
	}
	c.silences.put(p.UID, s)
	return &s
}

// keepEvents keeps of events what package scheduler/instance reads.
func keepEvents(all []corev1.Event) []corev1.Event {
	var kept []corev1.Event
	for _, e := range all {
		kept = append(kept, corev1.Event{
			InvolvedObject: corev1.ObjectReference{UID: e.InvolvedObject.UID}, Type: e.Type, Reason: e.Reason, Message: e.Message,
			FirstTimestamp: e.FirstTimestamp, LastTimestamp: e.LastTimestamp, EventTime: e.EventTime, Series: e.Series,
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: e.CreationTimestamp},
		})
	}
	return kept
}
