package authority_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/certificate"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// request writes the request of virt-controller, or takes it back.
func (w world) request(held bool) {
	w.t.Helper()
	w.change(certificate.ServingSecret, func(s *corev1.Secret) {
		if delete(s.Data, certificate.HoldKey); held {
			if s.Data == nil {
				s.Data = map[string][]byte{}
			}
			s.Data[certificate.HoldKey] = []byte("now")
		}
	})
}

func (w world) make(d vmi.Definition, name string) {
	w.t.Helper()
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	o.SetGroupVersionKind(d.GroupVersionKind)
	require.NoError(w.t, w.meta.Tracker().Create(d.Resource(), o, "shop"))
}

func (w world) awaitFinalizers(want ...string) {
	w.t.Helper()
	w.eventually(func() error {
		if have := slices.Sorted(slices.Values(w.webhooks().Finalizers)); !slices.Equal(have, want) {
			return fmt.Errorf("the finalizers are %v", have)
		}
		return nil
	})
}

func TestTheWebhooksAreHeldByOneFinalizerWhileThereAreVMIs(t *testing.T) {
	t.Parallel()
	c := webhooks(webhookOf("validation", "virt-controller"))
	c.Finalizers = []string{"example.com/other"}
	w := newWorld(t, c)
	w.run()
	w.make(vmi.VirtualMachineInstances.Definition, "a")
	w.request(true)
	w.awaitFinalizers("example.com/other", "podvisor.io/uninstall")

	// That the request is taken back is not enough.
	w.request(false)
	w.eventually(func() error {
		if _, ok := w.secret(certificate.ServingSecret).Data[certificate.HoldKey]; ok {
			return errors.New("the request is there still")
		}
		return nil
	})
	require.Contains(t, w.webhooks().Finalizers, "podvisor.io/uninstall")
	require.NoError(t, w.meta.Tracker().Delete(vmi.VirtualMachineInstances.Resource(), "shop", "a"))
	w.awaitFinalizers("example.com/other")
}

func TestTheWebhooksAreHeldForEveryKindThatRunsGuests(t *testing.T) {
	t.Parallel()
	for _, d := range scheduler.GuestKinds() {
		w := newWorld(t, webhooks(webhookOf("validation", "virt-controller")))
		w.run()
		w.make(d, "a")
		w.request(true)
		w.awaitFinalizers("podvisor.io/uninstall")
	}
}

func TestAttackARequestWithoutVMIsHoldsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, webhooks(webhookOf("validation", "virt-controller")))
	w.request(true)
	w.run()
	w.eventually(func() error {
		for _, a := range w.meta.Actions() {
			if a.GetVerb() == "list" {
				return nil
			}
		}
		return errors.New("the VMIs were not listed yet")
	})
	require.Empty(t, w.webhooks().Finalizers)
	w.make(vmi.VirtualMachineInstances.Definition, "a")
	w.request(true)
	w.change(certificate.ServingSecret, func(s *corev1.Secret) { s.Data[certificate.HoldKey] = []byte("again") })
	w.awaitFinalizers("podvisor.io/uninstall")
}
