package controller

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/podvisor/podvisor/vmi"
)

// eventSink writes events to the API, each in the namespace of its object.
type eventSink struct {
	ctx  context.Context
	kube kubernetes.Interface
}

func (s eventSink) Create(e *corev1.Event) (*corev1.Event, error) {
	return s.kube.CoreV1().Events(e.Namespace).CreateWithEventNamespaceWithContext(s.ctx, e)
}

func (s eventSink) Update(e *corev1.Event) (*corev1.Event, error) {
	return s.kube.CoreV1().Events(e.Namespace).UpdateWithEventNamespaceWithContext(s.ctx, e)
}

func (s eventSink) Patch(e *corev1.Event, data []byte) (*corev1.Event, error) {
	return s.kube.CoreV1().Events(e.Namespace).PatchWithEventNamespaceWithContext(s.ctx, e, data)
}

// reference is what an event says of its machine.
func reference(v *vmi.VirtualMachineInstance) *corev1.ObjectReference {
	gvk := vmi.Kind
	return &corev1.ObjectReference{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind,
		Namespace: v.Namespace, Name: v.Name, UID: v.UID, ResourceVersion: v.ResourceVersion,
	}
}

// maxEvent is the longest message of an event.
const maxEvent = 1024

func shorten(s string) string {
	if len(s) <= maxEvent {
		return s
	}
	return strings.ToValidUTF8(s[:maxEvent-3], "") + "…"
}
