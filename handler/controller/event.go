package controller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/handler"
	"github.com/podvisor/podvisor/vmi"
)

// component is who an event comes from.
const component = "virt-handler"

// eventTimeout is how long the API server may take to store an event.
const eventTimeout = 5 * time.Second

// emit emits an event. It is not left to a recorder in the background: there is
// one event per change at most, so nothing is to be aggregated, and one that waits
// would be lost when the process ends. An event that cannot be stored is lost, as
// events are.
func (c *Controller) emit(ctx context.Context, v *vmi.VirtualMachineInstance, e handler.Event) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), eventTimeout)
	defer cancel()
	if _, err := c.config.Events.Events(v.Namespace).Create(ctx, c.event(v, e, time.Now()), metav1.CreateOptions{}); err != nil {
		c.log.Warn("store an event", "vmi", v.Namespace+"/"+v.Name, "reason", e.Reason, "err", err)
	}
}

func (c *Controller) event(v *vmi.VirtualMachineInstance, e handler.Event, now time.Time) *corev1.Event {
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	at := metav1.NewTime(now)
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: fmt.Sprintf("%s.%x", v.Name, now.UnixNano())},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: vmi.GroupVersion.String(), Kind: vmi.Kind.Kind,
			Namespace: v.Namespace, Name: v.Name, UID: v.UID, ResourceVersion: v.ResourceVersion,
		},
		Type: kind, Reason: e.Reason, Message: e.Message,
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
		Source:              corev1.EventSource{Component: component, Host: c.config.Node},
		ReportingController: component, ReportingInstance: c.config.Node,
	}
}
