package serve

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func emptySecret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "virt-controller-certificates"}}
}

// webhookOf is a webhook that is served by the Service of this name.
func webhookOf(service string) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{Name: service + ".example.com", ClientConfig: admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{Namespace: "kubevirt", Name: service},
	}}
}

func run(t *testing.T, kube *fake.Clientset) *Certificates {
	t.Helper()
	k, err := NewCertificates(CertificatesConfig{Kube: kube, Namespace: "kubevirt"})
	require.NoError(t, err)
	require.Error(t, k.Ready())
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = k.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return k
}

func eventually(t *testing.T, do func() error) {
	t.Helper()
	var err error
	require.Eventually(t, func() bool { err = do(); return err == nil }, 10*time.Second, 5*time.Millisecond, "%v", err)
}

func TestOnlyOurWebhooksAreTouched(t *testing.T) {
	t.Parallel()
	kube := fake.NewClientset(emptySecret(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "virt-controller.kubevirt.io"},
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{webhookOf("another"), webhookOf("virt-controller")},
	})
	k := run(t, kube)
	eventually(t, k.Ready)
	eventually(t, func() error {
		c, err := kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "virt-controller.kubevirt.io", metav1.GetOptions{})
		if err != nil {
			return err
		}
		require.Empty(t, c.Webhooks[0].ClientConfig.CABundle)
		if len(c.Webhooks[1].ClientConfig.CABundle) == 0 {
			return errors.New("the authority is not written yet")
		}
		s, err := kube.CoreV1().Secrets("kubevirt").Get(t.Context(), "virt-controller-certificates", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, s.Data["ca.crt"], c.Webhooks[1].ClientConfig.CABundle)
		return nil
	})
	pair, err := k.Certificate(nil)
	require.NoError(t, err)
	require.Equal(t, []string{"virt-controller.kubevirt.svc"}, pair.Leaf.DNSNames)
}

func TestOnlyTheAPIServerLearnsTheWayToTheEvictions(t *testing.T) {
	t.Parallel()
	evictions := webhookOf("virt-controller")
	evictions.Name = "evictions.virt-controller.kubevirt.io"
	kube := fake.NewClientset(emptySecret(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "virt-controller.kubevirt.io"},
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{webhookOf("virt-controller"), evictions},
	})
	way := ""
	for range 2 { // the next process goes the same way
		k := run(t, kube)
		eventually(t, k.Ready)
		require.Regexp(t, `^/admission/eviction/[0-9a-z]{26,}$`, k.EvictionPath())
		eventually(t, func() error {
			c, err := kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "virt-controller.kubevirt.io", metav1.GetOptions{})
			if err != nil {
				return err
			}
			require.Nil(t, c.Webhooks[0].ClientConfig.Service.Path)
			if p := c.Webhooks[1].ClientConfig.Service.Path; p == nil || *p != k.EvictionPath() {
				return errors.New("the way is not written yet")
			}
			return nil
		})
		require.Contains(t, []string{"", k.EvictionPath()}, way)
		way = k.EvictionPath()
	}
}

func TestWhereNothingIsInstalledThereIsNothingToWaitFor(t *testing.T) {
	t.Parallel()
	kube := fake.NewClientset()
	k := run(t, kube)
	eventually(t, k.Ready)
	pair, err := k.Certificate(nil)
	require.NoError(t, err)
	require.Nil(t, pair)

	_, err = kube.CoreV1().Secrets("kubevirt").Create(t.Context(), emptySecret(), metav1.CreateOptions{})
	require.NoError(t, err)
	eventually(t, func() error {
		if pair, _ := k.Certificate(nil); pair == nil {
			return errors.New("there is no certificate yet")
		}
		return nil
	})
}

func TestWhoMayNotReadTheSecretIsReadyAllTheSame(t *testing.T) {
	t.Parallel()
	kube := fake.NewClientset(emptySecret())
	kube.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("secrets"), "", errors.New("no"))
	})
	eventually(t, run(t, kube).Ready)
}

func TestCertificatesNeedAClientAndANamespace(t *testing.T) {
	t.Parallel()
	_, err := NewCertificates(CertificatesConfig{})
	require.ErrorContains(t, err, "required")
}
