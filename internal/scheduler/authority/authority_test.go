package authority_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/podvisor/podvisor/internal/certificate"
	"github.com/podvisor/podvisor/internal/scheduler/authority"
	"github.com/podvisor/podvisor/vmi"
)

const configuration = "virt-controller.kubevirt.io"

func secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: name}}
}

// webhookOf is a webhook of this name that is served by the Service.
func webhookOf(name, service string) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{Name: name + "." + service + ".example.com", ClientConfig: admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{Namespace: "kubevirt", Name: service},
	}}
}

func webhooks(all ...admissionregistrationv1.ValidatingWebhook) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: configuration}, Webhooks: all}
}

// world is a cluster with the Secrets and what else a test puts into it.
type world struct {
	t    *testing.T
	kube *fake.Clientset
	meta *metadatafake.FakeMetadataClient
}

// newWorld refuses to write a Secret that was changed since it was read, as the API
// server does and the fake does not.
func newWorld(t *testing.T, objects ...runtime.Object) world {
	t.Helper()
	kube := fake.NewClientset(append([]runtime.Object{secret(certificate.AuthoritySecret), secret(certificate.ServingSecret)}, objects...)...)
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
	s := runtime.NewScheme()
	require.NoError(t, metav1.AddMetaToScheme(s))
	s.AddKnownTypeWithName(vmi.VirtualMachineInstances.GroupVersion().WithKind(vmi.VirtualMachineInstances.Kind+"List"), &metav1.PartialObjectMetadataList{})
	return world{t, kube, metadatafake.NewSimpleMetadataClient(s)}
}

// run runs an Authority until the test ends.
func (w world) run(change ...func(*authority.Config)) {
	w.t.Helper()
	c := authority.Config{Kube: w.kube, Metadata: w.meta, Namespace: "kubevirt", Pause: time.Millisecond}
	for _, f := range change {
		f(&c)
	}
	a, err := authority.New(c)
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = a.Run(ctx) })
	w.t.Cleanup(func() { cancel(); wg.Wait() })
}

func (w world) secret(name string) *corev1.Secret {
	w.t.Helper()
	s, err := w.kube.CoreV1().Secrets("kubevirt").Get(w.t.Context(), name, metav1.GetOptions{})
	require.NoError(w.t, err)
	return s
}

// change writes a Secret as another does.
func (w world) change(name string, f func(*corev1.Secret)) {
	w.t.Helper()
	w.eventually(func() error {
		s := w.secret(name)
		f(s)
		_, err := w.kube.CoreV1().Secrets("kubevirt").Update(w.t.Context(), s, metav1.UpdateOptions{})
		return err
	})
}

func (w world) webhooks() *admissionregistrationv1.ValidatingWebhookConfiguration {
	w.t.Helper()
	c, err := w.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(w.t.Context(), configuration, metav1.GetOptions{})
	require.NoError(w.t, err)
	return c
}

func (w world) eventually(do func() error) {
	w.t.Helper()
	err := do()
	for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); err = do() {
		time.Sleep(5 * time.Millisecond)
	}
	require.NoError(w.t, err)
}

// trusted says why what is served is not trusted by the first webhook at the time,
// and how many authorities that trusts.
func (w world) trusted(now time.Time) (authorities int, by []byte, err error) {
	w.t.Helper()
	s := w.secret(certificate.ServingSecret) // first: what is served must be trusted already
	ca := w.webhooks().Webhooks[0].ClientConfig.CABundle
	pair, err := tls.X509KeyPair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return 0, nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, DNSName: "virt-controller.kubevirt.svc"})
	return bytes.Count(ca, []byte("BEGIN")), pair.Leaf.AuthorityKeyId, err
}

func TestTheKeyOfTheAuthorityIsInItsOwnSecretOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, webhooks(webhookOf("validation", "virt-controller")))
	w.run()
	w.eventually(func() error { _, _, err := w.trusted(time.Now()); return err })
	own, serving := w.secret(certificate.AuthoritySecret), w.secret(certificate.ServingSecret)
	require.ElementsMatch(t, []string{"ca.crt", "ca.key", "path"}, slices.Collect(maps.Keys(own.Data)))
	require.ElementsMatch(t, []string{"ca.crt", "tls.crt", "tls.key", "path"}, slices.Collect(maps.Keys(serving.Data)))
	require.Equal(t, own.Data["path"], serving.Data["path"])
	require.NotEqual(t, own.Data["ca.key"], serving.Data["tls.key"])
}

func TestOnlyOurWebhooksAreTouched(t *testing.T) {
	t.Parallel()
	w := newWorld(t, webhooks(webhookOf("validation", "virt-controller"), webhookOf("uninstall", "another"), webhookOf("evictions", "virt-controller")))
	w.run()
	w.eventually(func() error {
		c, token := w.webhooks(), w.secret(certificate.AuthoritySecret).Data["path"]
		require.Empty(t, c.Webhooks[1].ClientConfig.CABundle)
		require.Nil(t, c.Webhooks[1].ClientConfig.Service.Path)
		if len(c.Webhooks[2].ClientConfig.CABundle) == 0 {
			return errors.New("the authority is not written yet")
		}
		require.Regexp(t, `^[0-9a-z]{26,}$`, string(token))
		require.Equal(t, "/admission/validation/"+string(token), *c.Webhooks[0].ClientConfig.Service.Path)
		require.Equal(t, "/admission/evictions/"+string(token), *c.Webhooks[2].ClientConfig.Service.Path)
		return nil
	})
}

// What virt-controller may write must not decide whom the API server trusts, or where
// it sends reviews.
func TestAttackTheSecretOfVirtControllerDecidesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, webhooks(webhookOf("validation", "virt-controller")))
	w.run()
	w.eventually(func() error { _, _, err := w.trusted(time.Now()); return err })
	before, hooks := w.secret(certificate.AuthoritySecret), w.webhooks()
	stolen, _, err := certificate.Policy{Name: "thief", Hosts: []string{"virt-controller.kubevirt.svc"}}.Renew(certificate.Bundle{}, time.Now())
	require.NoError(t, err)
	w.change(certificate.ServingSecret, func(s *corev1.Secret) {
		s.Data = map[string][]byte{
			"ca.crt": stolen.Authorities, "ca.key": stolen.AuthorityKey, "tls.crt": stolen.Certificate, "tls.key": stolen.Key,
			"path": []byte("chosen"), "evictions": []byte("chosen"),
		}
	})
	w.eventually(func() error {
		if s := w.secret(certificate.ServingSecret); bytes.Equal(s.Data["tls.crt"], stolen.Certificate) || s.Data["ca.key"] != nil || s.Data["evictions"] != nil {
			return errors.New("it is not corrected yet")
		}
		_, _, err := w.trusted(time.Now())
		return err
	})
	require.Equal(t, before.Data, w.secret(certificate.AuthoritySecret).Data)
	require.Equal(t, hooks.Webhooks, w.webhooks().Webhooks)
}

func TestASecretThatIsChangedAgainAndAgainIsCorrectedSeldom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(func(c *authority.Config) { c.Pause = time.Hour })
	w.eventually(func() error {
		if len(w.secret(certificate.ServingSecret).Data) == 0 {
			return errors.New("it is not written yet")
		}
		return nil
	})
	for i := range 20 {
		w.change(certificate.ServingSecret, func(s *corev1.Secret) { s.Data["x"] = []byte{byte(i)} })
	}
	// A write of another Secret is done after what came before.
	w.change(certificate.AuthoritySecret, func(s *corev1.Secret) { s.Data["x"] = nil })
	w.eventually(func() error {
		if _, ok := w.secret(certificate.AuthoritySecret).Data["x"]; ok {
			return errors.New("it is not corrected yet")
		}
		return nil
	})
	require.Contains(t, w.secret(certificate.ServingSecret).Data, "x")
}

// An earlier version had the key of the authority in the Secret of virt-controller.
func TestAKeyThatVirtControllerCouldReadIsNotUsed(t *testing.T) {
	t.Parallel()
	old, _, err := certificate.Policy{Name: "virt-controller.kubevirt", Hosts: []string{"virt-controller.kubevirt.svc"}}.Renew(certificate.Bundle{}, time.Now())
	require.NoError(t, err)
	hook := webhookOf("validation", "virt-controller")
	hook.ClientConfig.CABundle = old.Authorities
	w := newWorld(t, webhooks(hook))
	w.change(certificate.ServingSecret, func(s *corev1.Secret) {
		s.Data = map[string][]byte{"ca.crt": old.Authorities, "ca.key": old.AuthorityKey, "tls.crt": old.Certificate, "tls.key": old.Key, "evictions": []byte("old")}
	})
	w.run()
	w.eventually(func() error {
		s := w.secret(certificate.ServingSecret)
		if s.Data["ca.key"] != nil || s.Data["evictions"] != nil || bytes.Equal(s.Data["tls.crt"], old.Certificate) {
			return errors.New("it is there still")
		}
		n, _, err := w.trusted(time.Now())
		if err == nil && n != 1 {
			err = fmt.Errorf("%d authorities are trusted", n)
		}
		return err
	})
	require.NotContains(t, string(w.webhooks().Webhooks[0].ClientConfig.CABundle), string(old.Authorities))
	require.NotEqual(t, old.AuthorityKey, w.secret(certificate.AuthoritySecret).Data["ca.key"])
}

// The next authority is made, and for an hour it cannot be written.
func TestAnAuthorityThatIsNotTrustedYetSignsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, webhooks(webhookOf("validation", "virt-controller")))
	var mute atomic.Bool
	w.kube.PrependReactor("patch", "validatingwebhookconfigurations", func(clienttesting.Action) (bool, runtime.Object, error) {
		return mute.Load(), nil, errors.New("no")
	})
	var now atomic.Pointer[time.Time]
	pass := func(d time.Duration) {
		later := now.Load().Add(d)
		now.Store(&later)
	}
	now.Store(new(time.Now()))
	w.run(func(c *authority.Config) { c.Now = func() time.Time { return *now.Load() } })
	w.eventually(func() error { _, _, err := w.trusted(*now.Load()); return err })

	mute.Store(true)
	pass(5 * 24 * time.Hour)
	look := func() {
		w.change(certificate.ServingSecret, func(s *corev1.Secret) { s.Annotations = map[string]string{"at": now.Load().String()} })
	}
	look()
	w.eventually(func() error {
		if n := bytes.Count(w.secret(certificate.AuthoritySecret).Data["ca.crt"], []byte("BEGIN")); n != 2 {
			return errors.New("there is no second authority yet")
		}
		_, _, err := w.trusted(*now.Load())
		return err
	})
	_, before, _ := w.trusted(*now.Load())
	pass(time.Hour)
	for range 50 {
		look()
		time.Sleep(10 * time.Millisecond)
		n, by, err := w.trusted(*now.Load())
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, before, by)
	}
	mute.Store(false)
	// Seldom: the Authority cannot write a Secret that is changed again while it reads it. What
	// it could not write, it tries again after a time that has grown with each failure.
	var looked time.Time
	w.eventually(func() error {
		if time.Since(looked) > 5*time.Second {
			looked = time.Now()
			look()
		}
		n, by, err := w.trusted(*now.Load())
		if err == nil && (n != 2 || bytes.Equal(by, before)) {
			err = errors.New("the second authority does not sign yet")
		}
		return err
	})
}

func TestTheSecretsMayComeLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	secrets := w.kube.CoreV1().Secrets("kubevirt")
	require.NoError(t, secrets.Delete(t.Context(), certificate.AuthoritySecret, metav1.DeleteOptions{}))
	w.run()
	_, err := secrets.Create(t.Context(), secret(certificate.AuthoritySecret), metav1.CreateOptions{})
	require.NoError(t, err)
	w.eventually(func() error {
		if len(w.secret(certificate.ServingSecret).Data) == 0 {
			return errors.New("there is no certificate yet")
		}
		return nil
	})
}

func TestWhatWasNotStoredIsNeitherTrustedNorServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, webhooks(webhookOf("validation", "virt-controller")))
	var tries atomic.Int64
	w.kube.PrependReactor("update", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		tries.Add(1)
		return true, nil, apierrors.NewConflict(corev1.Resource("secrets"), "", errors.New("it was changed"))
	})
	w.run()
	w.eventually(func() error {
		if tries.Load() < 3 {
			return errors.New("it was not tried again yet")
		}
		return nil
	})
	require.Empty(t, w.webhooks().Webhooks[0].ClientConfig.CABundle)
	require.Empty(t, w.secret(certificate.ServingSecret).Data)
}

func TestAnAuthorityNeedsClientsAndANamespace(t *testing.T) {
	t.Parallel()
	_, err := authority.New(authority.Config{})
	require.EqualError(t, err, "authority.Config: set Kube, Metadata, Namespace")
}
