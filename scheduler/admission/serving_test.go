package admission

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
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

	"github.com/podvisor/podvisor/internal/certificate"
)

func emptySecret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: certificate.ServingSecret}, Type: corev1.SecretTypeTLS}
}

// issued is the Secret as an issuer of certificates fills it.
func issued(t *testing.T, life time.Duration) *corev1.Secret {
	t.Helper()
	b, _, err := certificate.Policy{Name: "test", Hosts: []string{"virt-controller.kubevirt.svc"}, Life: life}.Renew(certificate.Bundle{}, time.Now())
	require.NoError(t, err)
	s := emptySecret()
	s.Data = map[string][]byte{"ca.crt": b.Authorities, "tls.crt": b.Certificate, "tls.key": b.Key, "path": []byte("secret")}
	return s
}

func run(t *testing.T, kube *fake.Clientset) *Serving {
	t.Helper()
	s, err := NewServing(ServingConfig{Kube: kube, Namespace: "kubevirt", HoldWait: 200 * time.Millisecond})
	require.NoError(t, err)
	require.Error(t, s.Ready())
	start(t, s)
	return s
}

// start runs s until the test ends.
func start(t *testing.T, s *Serving) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
}

// eventually calls do, which may require things, until it returns no error.
func eventually(t *testing.T, do func() error) {
	t.Helper()
	err := do()
	for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); err = do() {
		time.Sleep(5 * time.Millisecond)
	}
	require.NoError(t, err)
}

func TestACertificateIsServedAsSoonAsItIsWritten(t *testing.T) {
	t.Parallel()
	kube := fake.NewClientset(emptySecret())
	s := run(t, kube)
	for _, life := range []time.Duration{time.Hour, 2 * time.Hour} {
		_, err := kube.CoreV1().Secrets("kubevirt").Update(t.Context(), issued(t, life), metav1.UpdateOptions{})
		require.NoError(t, err)
		eventually(t, func() error {
			pair, err := s.Certificate(nil)
			require.NoError(t, err)
			if pair == nil || pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore) < life {
				return errors.New("it is not served yet")
			}
			return s.Ready()
		})
	}
	require.Equal(t, "secret", s.Token())
	before, _ := s.Certificate(nil)
	broken := issued(t, time.Hour)
	broken.Data["tls.key"], broken.Data["path"] = []byte("none"), []byte("other")
	_, err := kube.CoreV1().Secrets("kubevirt").Update(t.Context(), broken, metav1.UpdateOptions{})
	require.NoError(t, err)
	eventually(t, func() error {
		if s.Token() != "other" {
			return errors.New("it is not read yet")
		}
		return nil
	})
	after, _ := s.Certificate(nil)
	require.Equal(t, before, after, "what is no pair is not served")
}

func TestWithoutASecretVirtControllerIsReady(t *testing.T) {
	t.Parallel()
	kube := fake.NewClientset()
	s := run(t, kube)
	eventually(t, s.Ready)
	pair, err := s.Certificate(nil)
	require.NoError(t, err)
	require.Nil(t, pair)

	_, err = kube.CoreV1().Secrets("kubevirt").Create(t.Context(), issued(t, time.Hour), metav1.CreateOptions{})
	require.NoError(t, err)
	eventually(t, func() error {
		if pair, _ := s.Certificate(nil); pair == nil {
			return errors.New("there is no certificate yet")
		}
		return nil
	})
}

func TestWithoutTheRightToReadTheSecretVirtControllerIsReady(t *testing.T) {
	t.Parallel()
	kube := fake.NewClientset(emptySecret())
	kube.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("secrets"), "", errors.New("no"))
	})
	eventually(t, run(t, kube).Ready)
}

func TestServingNeedsAClientAndANamespace(t *testing.T) {
	t.Parallel()
	_, err := NewServing(ServingConfig{})
	require.EqualError(t, err, "admission.ServingConfig: set Kube, Namespace")
}

func TestARequestIsAnsweredWhenItIsFulfilled(t *testing.T) {
	t.Parallel()
	kube := fake.NewClientset(issued(t, time.Hour), &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: certificate.Webhooks}})
	s := run(t, kube)
	eventually(t, s.Ready)
	eventually(t, func() error {
		if s.configuration() == nil {
			return errors.New("it is not known yet")
		}
		return nil
	})
	require.NoError(t, s.Hold(t.Context(), false), "it is not held")
	require.ErrorContains(t, s.Hold(t.Context(), true), "virt-certificates has not changed the finalizer", "virt-certificates does not run")
	// The request is so young that it is not repeated, however long the test takes.
	secret, err := kube.CoreV1().Secrets("kubevirt").Get(t.Context(), s.cfg.Secret, metav1.GetOptions{})
	require.NoError(t, err)
	young := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	secret.Data[certificate.HoldKey] = []byte(young)
	_, err = kube.CoreV1().Secrets("kubevirt").Update(t.Context(), secret, metav1.UpdateOptions{})
	require.NoError(t, err)
	eventually(t, func() error {
		if o, ok, err := s.secrets.GetStore().GetByKey("kubevirt/" + s.cfg.Secret); err != nil || !ok || string(o.(*corev1.Secret).Data[certificate.HoldKey]) != young {
			return errors.New("the cache does not have it yet")
		}
		return nil
	})
	s.cfg.HoldWait = time.Hour
	soon, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.ErrorContains(t, s.Hold(soon, true), "virt-certificates has not changed the finalizer")
	require.NoError(t, soon.Err(), "it is not waited for again")

	// fulfil does what virt-certificates does.
	configurations := kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	fulfil := func(finalizers ...string) {
		c, err := configurations.Get(t.Context(), certificate.Webhooks, metav1.GetOptions{})
		require.NoError(t, err)
		c.Finalizers = finalizers
		_, err = configurations.Update(t.Context(), c, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	fulfil(certificate.HoldFinalizer)
	eventually(t, func() error { return s.Hold(t.Context(), true) })
	s.cfg.HoldWait = time.Minute
	var wg sync.WaitGroup
	wg.Go(func() {
		eventually(t, func() error {
			if s.requested() {
				return errors.New("the request is there still")
			}
			return nil
		})
		fulfil()
	})
	require.NoError(t, s.Hold(t.Context(), false))
	wg.Wait()
	require.False(t, s.requested())
}

func TestWithoutTheWebhookConfigurationPodvisorIsNotGuarded(t *testing.T) {
	t.Parallel()
	kube := fake.NewClientset(emptySecret(), &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: certificate.Webhooks}})
	var changes atomic.Int32
	s, err := NewServing(ServingConfig{Kube: kube, Namespace: "kubevirt", Changed: func() { changes.Add(1) }})
	require.NoError(t, err)
	require.True(t, s.Guarded(), "before it is known")
	start(t, s)
	eventually(t, func() error {
		if changes.Load() < 1 {
			return errors.New("nothing changed yet")
		}
		return nil
	})
	require.True(t, s.Guarded())
	// Client-go's fake gives a watch what was added or changed since the list, but not what was
	// deleted.
	eventually(t, func() error {
		if !slices.ContainsFunc(kube.Actions(), func(a clienttesting.Action) bool { return a.Matches("watch", "validatingwebhookconfigurations") }) {
			return errors.New("it is not watched yet")
		}
		return nil
	})
	require.NoError(t, kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(t.Context(), certificate.Webhooks, metav1.DeleteOptions{}))
	eventually(t, func() error {
		if s.Guarded() || changes.Load() < 2 {
			return errors.New("it is not known yet")
		}
		return nil
	})
	require.NoError(t, s.Hold(t.Context(), true), "of what does not exist")
}
