package demo

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// Timeline is what happened to a VMI, in order, as a client of the API saw
// it. It is safe for concurrent use.
type Timeline struct {
	start time.Time
	show  io.Writer

	mu    sync.Mutex // protects steps and seen
	steps []step
	seen  map[string]bool
}

type step struct {
	what string
	at   time.Duration
}

// newTimeline starts a timeline that writes each step to show at once.
func newTimeline(show io.Writer) *Timeline {
	return &Timeline{start: time.Now(), show: show, seen: map[string]bool{}}
}

// Note adds a step, the first time that it is noted.
func (t *Timeline) Note(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen[what] {
		return
	}
	t.seen[what] = true
	s := step{what, time.Since(t.start)}
	t.steps = append(t.steps, s)
	_, _ = fmt.Fprintf(t.show, "  %6.2f s  %s\n", s.at.Seconds(), s.what)
}

// watchPod notes what becomes of the VMI's pod until ctx ends.
func (t *Timeline) watchPod(ctx context.Context, kube kubernetes.Interface, v *vmi.VirtualMachineInstance) error {
	w, err := kube.CoreV1().Pods(v.Namespace).Watch(ctx, metav1.ListOptions{LabelSelector: vmi.CreatedByLabel + "=" + string(v.UID)})
	if err != nil {
		return err
	}
	for e := range w.ResultChan() {
		p, ok := e.Object.(*corev1.Pod)
		if !ok {
			continue
		}
		t.Note("virt-controller made the pod %s", p.Name)
		if p.Spec.NodeName != "" {
			t.Note("kube-scheduler chose node %s", p.Spec.NodeName)
		}
		for _, c := range p.Status.ContainerStatuses {
			if c.State.Running != nil {
				t.Note("kubelet runs virt-launcher in it")
			}
		}
	}
	return ctx.Err()
}

// awaitRunning notes the VMI's phases until it runs.
func (t *Timeline) awaitRunning(ctx context.Context, c *client.Client, v *vmi.VirtualMachineInstance) (*vmi.VirtualMachineInstance, error) {
	w, err := c.VirtualMachineInstances(v.Namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + v.Name})
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		v, ok := e.Object.(*vmi.VirtualMachineInstance)
		if !ok || e.Type == watch.Deleted {
			return nil, fmt.Errorf("watch the VMI: it is gone, or the watch broke: %v", e.Object)
		}
		if v.Status.Phase != "" {
			t.Note("phase %s", v.Status.Phase)
		}
		for _, c := range v.Status.Conditions {
			if c.Status == corev1.ConditionFalse && c.Type != vmi.ConditionReady {
				t.Note("%s is False: %s: %s", c.Type, c.Reason, c.Message)
			}
		}
		if v.Status.Phase == vmi.PhaseRunning {
			return v, nil
		}
		if v.Status.Phase.Final() {
			return nil, fmt.Errorf("the VMI ended as %s: %s", v.Status.Phase, v.Status.Reason)
		}
	}
	return nil, fmt.Errorf("the VMI does not run yet: %w", context.Cause(ctx))
}
