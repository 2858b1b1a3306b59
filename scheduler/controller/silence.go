package controller

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

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

// silence is what is known of the VMI's pod, if it is silent. Its events are read when
// it is time. That they cannot be read stops nothing else: the known ones count on.
func (c *Controller) silence(ctx context.Context, v *vmi.VirtualMachineInstance, p *corev1.Pod) *instance.Silence {
	if p == nil {
		return nil
	}
	if !instance.PodWaitsSilently(v, p) {
		c.silences.Delete(p.UID)
		return nil
	}
	now := c.cfg.Now()
	s := c.silences.GetOrPut(p.UID, instance.Silence{Since: now}, now, 0)
	if now.Before(s.Due()) || !c.eventReads.accept(p.Namespace, now) {
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
	c.silences.Put(p.UID, s, now, 0)
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
