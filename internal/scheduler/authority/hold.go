package authority

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/certificate"
	"github.com/podvisor/podvisor/scheduler"
)

// unheldPeriod is the time between two looks for such objects while the webhooks are held and
// need not be.
const unheldPeriod = time.Second

// hold puts the finalizer on the ValidatingWebhookConfiguration if virt-controller
// requests it and there are VMIs, or objects that make VMIs, and removes it if there is
// neither. again is when to look again.
func (a *Authority) hold(ctx context.Context, serving *corev1.Secret) (again time.Duration, err error) {
	_, requested := serving.Data[certificate.HoldKey]
	var c *admissionregistrationv1.ValidatingWebhookConfiguration
	for _, r := range a.registrations {
		if r.what == validatingKind {
			c, _ = cached[*admissionregistrationv1.ValidatingWebhookConfiguration](r.informer, r.name)
		}
	}
	if c == nil || slices.Contains(c.Finalizers, certificate.HoldFinalizer) == requested || requested && c.DeletionTimestamp != nil {
		return 0, nil // an object that is being deleted gets no more finalizers
	}
	needed, err := a.needed(ctx)
	switch {
	case err != nil:
		return 0, fmt.Errorf("list the objects of Podvisor, to know whether the webhooks must stay in force: %w", err)
	case needed && !requested:
		return unheldPeriod, nil
	case needed != requested:
		return 0, nil // virt-controller writes its request again with the next refusal
	}
	return 0, a.finalize(ctx, requested)
}

// needed asks the API server whether there are VMIs, or objects that make VMIs.
func (a *Authority) needed(ctx context.Context) (bool, error) {
	for _, d := range scheduler.GuestKinds() {
		list, err := a.cfg.Metadata.Resource(d.Resource()).List(ctx, metav1.ListOptions{Limit: 1})
		switch {
		case apierrors.IsNotFound(err): // there is no such kind any more
		case err != nil:
			return false, err
		case len(list.Items) > 0:
			return true, nil
		}
	}
	return false, nil
}

// finalize adds the finalizer or removes it.
func (a *Authority) finalize(ctx context.Context, held bool) error {
	list, done := "finalizers", "put the finalizer that keeps the webhooks in force"
	if !held {
		list, done = "$deleteFromPrimitiveList/finalizers", "removed the finalizer that kept the webhooks in force"
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{list: []string{certificate.HoldFinalizer}}})
	if err != nil {
		return err
	}
	_, err = a.cfg.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Patch(ctx, a.cfg.Webhooks, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("patch the finalizers of %s %s: %w", validatingKind, a.cfg.Webhooks, err)
	}
	a.log.Info(done, "kind", validatingKind, "name", a.cfg.Webhooks)
	return nil
}
