package causes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// Site is where mistakes are made. It is safe for concurrent use.
type Site struct {
	Kube kubernetes.Interface
	VMIs *client.Client
	// Namespace holds the VMI of one mistake and nothing else. Required.
	Namespace string
}

// Cause is what a VMI says of a mistake.
type Cause struct {
	// Kubernetes is when Kubernetes itself said the cause about the pod of the VMI.
	// Nil: it never does, or not before the VMI.
	Kubernetes *time.Duration
	// VMI is when the VMI said it.
	VMI time.Duration
	// Reason and Message are what it says.
	Reason, Message string
}

// ErrNotNamed is the class of the error of a VMI that does not name the cause in
// time.
var ErrNotNamed = errors.New("the VMI does not name the cause")

// Measure makes the mistake and returns when the VMI names the cause. The times are
// from the moment of the mistake: the creation of the VMI, or what is done to it
// later. The limit of the time is that of the context.
func Measure(ctx context.Context, s Site, m Mistake) (Cause, error) {
	if m.Prepare != nil {
		if err := m.Prepare(ctx, s); err != nil {
			return Cause{}, fmt.Errorf("prepare: %w", err)
		}
	}
	w, err := s.watch(ctx)
	if err != nil {
		return Cause{}, err
	}
	defer w.stop()
	start := time.Now()
	if m.VM {
		if _, err := s.VMIs.VirtualMachines(s.Namespace).Create(ctx, vmOf(m.VMI), metav1.CreateOptions{}); err != nil {
			return Cause{}, err
		}
		return w.await(ctx, m, start)
	}
	v, err := s.VMIs.VirtualMachineInstances(s.Namespace).Create(ctx, m.VMI.DeepCopy(), metav1.CreateOptions{})
	switch {
	case m.Refused && err != nil:
		if !strings.Contains(err.Error(), m.Message) {
			return Cause{}, fmt.Errorf("%w: %w", ErrNotNamed, err)
		}
		return Cause{VMI: time.Since(start), Reason: "refused", Message: err.Error()}, nil
	case m.Refused:
		return Cause{}, fmt.Errorf("%w: it was accepted", ErrNotNamed)
	case err != nil:
		return Cause{}, err
	}
	if m.Act != nil {
		if _, err := client.WaitForPhase(ctx, s.VMIs.VirtualMachineInstances(s.Namespace), v.Name, vmi.PhaseRunning); err != nil {
			return Cause{}, err
		}
		start = time.Now()
		if err := m.Act(ctx, s, v); err != nil {
			return Cause{}, err
		}
	}
	return w.await(ctx, m, start)
}

// vmOf is a VM that always runs, with the spec of the VMI.
func vmOf(v *vmi.VirtualMachineInstance) *vmi.VirtualMachine {
	return &vmi.VirtualMachine{
		ObjectMeta: metav1.ObjectMeta{Name: v.Name},
		Spec: vmi.VirtualMachineSpec{RunStrategy: new(vmi.RunAlways), Template: &vmi.VirtualMachineInstanceTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: v.Annotations}, Spec: *v.Spec.DeepCopy(),
		}},
	}
}

// watches are the changes of the VM, the VMI, its pod and the events in the namespace.
type watches struct{ vms, vmis, pods, events watch.Interface }

func (s Site) watch(ctx context.Context) (w watches, err error) {
	defer func() {
		if err != nil {
			w.stop()
		}
	}()
	if w.pods, err = s.Kube.CoreV1().Pods(s.Namespace).Watch(ctx, metav1.ListOptions{}); err != nil {
		return w, fmt.Errorf("watch pods: %w", err)
	}
	if w.events, err = s.Kube.CoreV1().Events(s.Namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Pod"}); err != nil {
		return w, fmt.Errorf("watch events: %w", err)
	}
	if w.vmis, err = s.VMIs.VirtualMachineInstances(s.Namespace).Watch(ctx, metav1.ListOptions{}); err != nil {
		return w, fmt.Errorf("watch VMIs: %w", err)
	}
	if w.vms, err = s.VMIs.VirtualMachines(s.Namespace).Watch(ctx, metav1.ListOptions{}); err != nil {
		return w, fmt.Errorf("watch VMs: %w", err)
	}
	return w, nil
}

func (w watches) stop() {
	for _, one := range []watch.Interface{w.vms, w.vmis, w.pods, w.events} {
		if one != nil {
			one.Stop()
		}
	}
}

// await waits until the VMI names the cause. The VMI may be faster than the event
// of Kubernetes is.
func (w watches) await(ctx context.Context, m Mistake, start time.Time) (Cause, error) {
	var c Cause
	last := "it has no status"
	for {
		var e watch.Event
		var ok bool
		select {
		case <-ctx.Done():
			return c, fmt.Errorf("%w: %s: %w", ErrNotNamed, last, context.Cause(ctx))
		case e, ok = <-w.pods.ResultChan():
		case e, ok = <-w.events.ResultChan():
		case e, ok = <-w.vmis.ResultChan():
		case e, ok = <-w.vms.ResultChan():
		}
		if !ok || e.Type == watch.Error {
			return c, fmt.Errorf("watch %s: the watch ended: %v", m.Name, e.Object)
		}
		took := time.Since(start)
		if state, reason, message, ok := m.said(e.Object); ok {
			last = fmt.Sprintf("it is %s: %s: %s", state, reason, message)
			if m.names(reason, message) {
				c.VMI, c.Reason, c.Message = took, reason, message
				return c, nil
			}
		}
		if c.Kubernetes == nil && m.Kubernetes != "" && slices.ContainsFunc(texts(e.Object), func(t string) bool { return strings.Contains(t, m.Kubernetes) }) {
			c.Kubernetes = &took
		}
	}
}

// said is what the VMI says of why it is not ready, or the VM between two tries: the
// condition Ready, with the reason of the status where there is one. It is false for all
// other objects.
func (m Mistake) said(o any) (state, reason, message string, ok bool) {
	var ready *vmi.Condition
	switch v := o.(type) {
	case *vmi.VirtualMachineInstance:
		state, reason, ready, ok = string(v.Status.Phase), v.Status.Reason, v.Status.Condition(vmi.ConditionReady), !m.VM
	case *vmi.VirtualMachine:
		state, reason, ready = string(v.Status.PrintableStatus), v.Status.Reason, v.Status.Condition(vmi.ConditionReady)
		ok = m.VM && v.Status.PrintableStatus == vmi.StatusCrashLoopBackOff
	}
	if ready == nil || ready.Status != corev1.ConditionFalse {
		return state, reason, "", ok
	}
	return state, cmp.Or(reason, ready.Reason), ready.Message, ok
}

// names reports whether the reason and the message are the cause.
func (m Mistake) names(reason, message string) bool {
	return slices.Contains(m.Reasons, reason) && strings.Contains(message, m.Message)
}

// texts are all that Kubernetes says about a pod, in it or in one of its events.
func texts(o any) []string {
	if e, ok := o.(*corev1.Event); ok {
		return []string{e.Reason + ": " + e.Message}
	}
	p, ok := o.(*corev1.Pod)
	if !ok {
		return nil
	}
	out := []string{p.Status.Reason + ": " + p.Status.Message}
	for _, c := range p.Status.Conditions {
		out = append(out, c.Reason+": "+c.Message)
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil {
			out = append(out, w.Reason+": "+w.Message)
		}
		if t := c.State.Terminated; t != nil {
			out = append(out, t.Reason+": "+t.Message)
		}
	}
	return out
}
