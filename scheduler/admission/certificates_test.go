package admission

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strconv"
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
	start(t, k)
	return k
}

// start runs k until the test ends.
func start(t *testing.T, k *Certificates) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = k.Run(ctx) })
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

// newKube is a cluster that holds the objects. It refuses to write a Secret that
// was changed since it was read, as the API server does and the fake does not.
func newKube(objects ...runtime.Object) *fake.Clientset {
	kube := fake.NewClientset(objects...)
	var mu sync.Mutex
	version := 0
	secrets := corev1.SchemeGroupVersion.WithResource("secrets")
	kube.PrependReactor("update", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		s := a.(clienttesting.UpdateAction).GetObject().(*corev1.Secret).DeepCopy()
		stored, err := kube.Tracker().Get(secrets, s.Namespace, s.Name)
		if err != nil {
			return true, nil, err
		}
		if stored.(*corev1.Secret).ResourceVersion != s.ResourceVersion {
			return true, nil, apierrors.NewConflict(corev1.Resource("secrets"), s.Name, errors.New("it was changed"))
		}
		version++
		s.ResourceVersion = strconv.Itoa(version)
		return true, s, kube.Tracker().Update(secrets, s, s.Namespace)
	})
	return kube
}

func TestOnlyOurWebhooksAreTouched(t *testing.T) {
	t.Parallel()
	kube := newKube(emptySecret(), &admissionregistrationv1.ValidatingWebhookConfiguration{
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

func TestTheEvictionPathIsWrittenIntoItsWebhookOnly(t *testing.T) {
	t.Parallel()
	evictions := webhookOf("virt-controller")
	evictions.Name = "evictions.virt-controller.kubevirt.io"
	kube := newKube(emptySecret(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "virt-controller.kubevirt.io"},
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{webhookOf("virt-controller"), evictions},
	})
	one, other := run(t, kube), run(t, kube)
	eventually(t, func() error {
		c, err := kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "virt-controller.kubevirt.io", metav1.GetOptions{})
		if err != nil {
			return err
		}
		require.Nil(t, c.Webhooks[0].ClientConfig.Service.Path)
		p := c.Webhooks[1].ClientConfig.Service.Path
		if p == nil || *p != one.EvictionPath() || *p != other.EvictionPath() {
			return fmt.Errorf("the path is not the same in all places yet: %q and %q", one.EvictionPath(), other.EvictionPath())
		}
		require.Regexp(t, `^/admission/eviction/[0-9a-z]{26,}$`, *p)
		return nil
	})
}

// The next authority is made, and for an hour it cannot be written.
func TestAnAuthorityThatIsNotTrustedYetSignsNothing(t *testing.T) {
	t.Parallel()
	const config, secret = "virt-controller.kubevirt.io", "virt-controller-certificates"
	ctx, get := t.Context(), metav1.GetOptions{}
	kube := newKube(emptySecret(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: config}, Webhooks: []admissionregistrationv1.ValidatingWebhook{webhookOf("virt-controller")},
	})
	var mute atomic.Bool
	kube.PrependReactor("patch", "validatingwebhookconfigurations", func(clienttesting.Action) (bool, runtime.Object, error) {
		return mute.Load(), nil, errors.New("no")
	})
	var now atomic.Pointer[time.Time]
	pass := func(d time.Duration) {
		later := now.Load().Add(d)
		now.Store(&later)
	}
	now.Store(new(time.Now()))
	k, err := NewCertificates(CertificatesConfig{Kube: kube, Namespace: "kubevirt", Now: func() time.Time { return *now.Load() }})
	require.NoError(t, err)
	start(t, k)
	// trusted says why the API server does not trust what is served, and how many
	// authorities it trusts.
	trusted := func() (int, error) {
		pair, _ := k.Certificate(nil) // first: what is served must be trusted already
		c, err := kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, config, get)
		require.NoError(t, err)
		ca := c.Webhooks[0].ClientConfig.CABundle
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(ca)
		if pair == nil {
			return 0, errors.New("there is no certificate yet")
		}
		_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: *now.Load()})
		return bytes.Count(ca, []byte("BEGIN")), err
	}
	eventually(t, func() error { _, err := trusted(); return err })

	mute.Store(true)
	pass(5 * 24 * time.Hour)
	look := func() {
		s, err := kube.CoreV1().Secrets("kubevirt").Get(ctx, secret, get)
		require.NoError(t, err)
		s.Annotations = map[string]string{"at": now.Load().String()}
		if _, err = kube.CoreV1().Secrets("kubevirt").Update(ctx, s, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			require.NoError(t, err)
		}
	}
	look()
	eventually(t, func() error {
		s, err := kube.CoreV1().Secrets("kubevirt").Get(ctx, secret, get)
		if n := bytes.Count(s.Data["ca.crt"], []byte("BEGIN")); err == nil && n != 2 {
			return errors.New("there is no second authority yet")
		}
		return err
	})
	pass(time.Hour)
	for range 50 {
		look()
		time.Sleep(10 * time.Millisecond)
		n, err := trusted()
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	before, _ := k.Certificate(nil)
	mute.Store(false)
	eventually(t, func() error {
		look()
		n, err := trusted()
		require.NoError(t, err)
		if after, _ := k.Certificate(nil); n != 2 || after == before || bytes.Equal(after.Leaf.AuthorityKeyId, before.Leaf.AuthorityKeyId) {
			return errors.New("the second authority does not sign yet")
		}
		return nil
	})
}

func TestWithoutASecretTheWebhooksAreReady(t *testing.T) {
	t.Parallel()
	kube := newKube()
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

func TestWithoutTheRightToReadTheSecretTheWebhooksAreReady(t *testing.T) {
	t.Parallel()
	kube := newKube(emptySecret())
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

// Another replica may have stored another authority first.
func TestACertificateThatWasNotStoredIsNotServed(t *testing.T) {
	t.Parallel()
	kube := newKube(emptySecret())
	var tries atomic.Int64
	kube.PrependReactor("update", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		tries.Add(1)
		return true, nil, apierrors.NewConflict(corev1.Resource("secrets"), "", errors.New("it was changed"))
	})
	k := run(t, kube)
	eventually(t, func() error {
		if tries.Load() < 3 {
			return errors.New("it was not tried again yet")
		}
		return nil
	})
	pair, err := k.Certificate(nil)
	require.NoError(t, err)
	require.Nil(t, pair)
}
