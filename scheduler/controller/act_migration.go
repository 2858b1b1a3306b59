package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
)

// createMigration creates the migration of the VMI o, and says so in an event. A refusal is no
// [Refusal]: the VMI is decided on meanwhile as if there was none.
func (e *executor[T, L]) createMigration(ctx context.Context, o T, m *vmi.VirtualMachineInstanceMigration) error {
	_, err := e.client.VirtualMachineInstanceMigrations(m.Namespace).Create(ctx, m, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil
	case err != nil:
		f := vmi.Finding{Reason: instance.FailedCreate, Message: fmt.Sprintf("create migration %s: %v", m.Name, err)}
		e.events.Emit(ctx, o, reconcile.Event{Warning: true, Finding: f})
		return fmt.Errorf("create VirtualMachineInstanceMigration %s/%s: %w", m.Namespace, m.Name, err)
	}
	e.events.Emit(ctx, o, reconcile.Event{Finding: vmi.Finding{Reason: "SuccessfulCreate", Message: "Created migration " + m.Name + ", as the VMI has to leave its node"}})
	return nil
}
