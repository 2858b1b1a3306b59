package controller

import (
	"context"
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
)

// createMigration creates the migration of the VMI o, and says so in an event. A refusal is no
// [Refusal]: the VMI is decided on meanwhile as if there was none.
func (e *executor[T, L]) createMigration(ctx context.Context, o T, a scheduler.CreateMigration) error {
	m := a.Migration
	_, err := e.client.VirtualMachineInstanceMigrations(m.Namespace).Create(ctx, m, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil
	case err != nil:
		e.say(ctx, o, true, instance.FailedCreate, fmt.Sprintf("create migration %s: %v", m.Name, err))
		return fmt.Errorf("create VirtualMachineInstanceMigration %s/%s: %w", m.Namespace, m.Name, err)
	}
	e.say(ctx, o, false, "SuccessfulCreate", "Created migration "+m.Name+": "+a.Why)
	return nil
}

// evictPod asks for the eviction of a pod of the VMI o, and says in an event what was
// answered. That it is refused is no error: it is asked for again later.
func (e *executor[T, L]) evictPod(ctx context.Context, o T, a scheduler.EvictPod) error {
	err := e.kube.CoreV1().Pods(o.GetNamespace()).EvictV1(ctx, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: a.Name}, DeleteOptions: metav1.NewPreconditionDeleteOptions(string(a.UID)),
	})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err): // the pod is gone, or another one
		return nil
	case err != nil:
		e.say(ctx, o, true, "FailedEvict", fmt.Sprintf("the pod %s is not evicted: %v", a.Name, err))
		if apierrors.IsTooManyRequests(err) {
			return nil
		}
		return fmt.Errorf("evict pod %s/%s: %w", o.GetNamespace(), a.Name, err)
	}
	e.say(ctx, o, false, "SuccessfulEvict", "Evicted pod "+a.Name+": "+a.Why)
	return nil
}

// say writes an event about the object.
func (e *executor[T, L]) say(ctx context.Context, o T, warning bool, reason, message string) {
	e.events.Emit(ctx, o, reconcile.Event{Warning: warning, Finding: vmi.Finding{Reason: reason, Message: message}})
}
