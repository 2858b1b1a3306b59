package admission

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/podvisor/podvisor/internal/vmi/bounds"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	decoder "github.com/podvisor/podvisor/vmi/decode"
	"github.com/podvisor/podvisor/vmi/validate"
)

// Migrations answers admission reviews at [MigrationPath]: it refuses a migration that is
// created for a VMI that cannot move, or that moves already. Two that are created at the
// same time may both be allowed: virt-controller lets one of them run.
type Migrations struct {
	// Client reads VMIs and migrations. Required.
	Client *client.Client
	// Logger logs each migration that is refused. Nil: nothing is logged.
	Logger *slog.Logger
}

// ServeHTTP answers one review.
func (m Migrations) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer(w, r, m.Logger, func(ctx context.Context, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		why, err := m.refusal(ctx, req)
		switch {
		case err != nil:
			return refused(apierrors.NewServiceUnavailable(err.Error()))
		case why != "":
			return refused(apierrors.NewBadRequest(why))
		}
		return allowed()
	})
}

// refusal says why the migration must not be created, or nothing. What it says of itself
// is judged by [Webhooks]. The error is that this is not known.
func (m Migrations) refusal(ctx context.Context, req *admissionv1.AdmissionRequest) (string, error) {
	made := &vmi.VirtualMachineInstanceMigration{}
	readable := bounds.Fault(req.Kind.Kind, req.Object.Raw) == nil && decoder.Into(req.Object.Raw, made) == nil
	if !readable || made.Spec.VMIName == "" {
		return "", nil
	}
	made.Namespace, made.Name = req.Namespace, nameOf(req)
	v, err := m.Client.VirtualMachineInstances(req.Namespace).Get(ctx, made.Spec.VMIName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		v = nil
	case err != nil:
		return "", fmt.Errorf("read VMI %s/%s, which is to move: %w", req.Namespace, made.Spec.VMIName, err)
	}
	others, err := m.Client.VirtualMachineInstanceMigrations(req.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.Set{vmi.MigrationSelectorLabel: made.Spec.VMIName}.String(),
	})
	if err != nil {
		return "", fmt.Errorf("list the migrations of VMI %s/%s: %w", req.Namespace, made.Spec.VMIName, err)
	}
	if faults := validate.MigrationOf(made, v, others.Items...); len(faults) > 0 {
		return faults[0].Detail, nil
	}
	return "", nil
}
