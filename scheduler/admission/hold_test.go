package admission

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheWebhookConfigurationIsHeldByOneFinalizer(t *testing.T) {
	t.Parallel()
	kube := newKube(emptySecret(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "virt-controller.kubevirt.io", Finalizers: []string{"example.com/other"}},
	})
	k := run(t, kube)
	configurations := kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	for _, tt := range []struct {
		held bool
		want []string
	}{
		{false, []string{"example.com/other"}},
		{true, []string{"example.com/other", "podvisor.io/uninstall"}},
		{true, []string{"example.com/other", "podvisor.io/uninstall"}},
		{false, []string{"example.com/other"}},
	} {
		eventually(t, func() error { // the cache is up to date
			if err := k.Hold(t.Context(), tt.held); err != nil {
				return err
			}
			c, err := configurations.Get(t.Context(), "virt-controller.kubevirt.io", metav1.GetOptions{})
			if err == nil && len(c.Finalizers) != len(tt.want) {
				err = errors.New("not written yet")
			}
			if err == nil {
				require.ElementsMatch(t, tt.want, c.Finalizers)
			}
			return err
		})
	}
}

func TestWithoutTheWebhookConfigurationPodvisorIsNotGuarded(t *testing.T) {
	t.Parallel()
	kube := newKube(emptySecret(), &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "virt-controller.kubevirt.io"}})
	var changes atomic.Int32
	k, err := NewCertificates(CertificatesConfig{Kube: kube, Namespace: "kubevirt", Changed: func() { changes.Add(1) }})
	require.NoError(t, err)
	require.True(t, k.Guarded(), "before it is known")
	start(t, k)
	eventually(t, func() error {
		if changes.Load() < 1 {
			return errors.New("nothing changed yet")
		}
		return nil
	})
	require.True(t, k.Guarded())
	require.NoError(t, kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(t.Context(), "virt-controller.kubevirt.io", metav1.DeleteOptions{}))
	eventually(t, func() error {
		if k.Guarded() || changes.Load() < 2 {
			return errors.New("it is not known yet")
		}
		return nil
	})
	require.NoError(t, k.Hold(t.Context(), true), "of what does not exist")
}
