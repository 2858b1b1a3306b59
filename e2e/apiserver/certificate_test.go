package apiserver

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/internal/certificate"
	"github.com/podvisor/podvisor/internal/scheduler/authority"
)

// tokenOf is a client with a token of the account, as one that is stolen from its pod.
func tokenOf(t *testing.T, account string) kubernetes.Interface {
	t.Helper()
	kube, err := kubernetes.NewForConfig(withTokenOf(t, account))
	require.NoError(t, err)
	return kube
}

func withTokenOf(t *testing.T, account string) *rest.Config {
	t.Helper()
	r, err := world.kube.CoreV1().ServiceAccounts(home).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	cfg := rest.AnonymousClientConfig(world.config)
	cfg.BearerToken = r.Status.Token
	return cfg
}

func metadataFor(t *testing.T, cfg *rest.Config) metadata.Interface {
	t.Helper()
	meta, err := metadata.NewForConfig(cfg)
	require.NoError(t, err)
	return meta
}

// keepInstallation does what virt-certificates does for the installation that all
// tests share, with its token, and returns when the API server trusts its authority.
func keepInstallation(t *testing.T) {
	t.Helper()
	cfg := withTokenOf(t, "virt-certificates")
	a, err := authority.New(authority.Config{Kube: tokenOf(t, "virt-certificates"), Metadata: metadataFor(t, cfg), Namespace: home})
	require.NoError(t, err)
	background(t, a.Run)
	eventually(t, func() error { return kept(t.Context()) })
}

// kept says whether the API server trusts the authority of that installation.
func kept(ctx context.Context) error {
	s, err := world.kube.CoreV1().Secrets(home).Get(ctx, certificate.ServingSecret, metav1.GetOptions{})
	if err != nil {
		return err
	}
	m, err := world.kube.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, certificate.Webhooks, metav1.GetOptions{})
	if err != nil {
		return err
	}
	v, err := world.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, certificate.Webhooks, metav1.GetOptions{})
	if err != nil {
		return err
	}
	ca := s.Data[certificate.AuthoritiesKey]
	if len(ca) == 0 || !bytes.Equal(ca, m.Webhooks[0].ClientConfig.CABundle) {
		return errors.New("the authority is not written yet")
	}
	for _, w := range v.Webhooks {
		if !bytes.Equal(ca, w.ClientConfig.CABundle) || w.ClientConfig.Service.Path == nil {
			return errors.New("the authority or the path is not written yet")
		}
	}
	return nil
}

// keepOnce does what virt-certificates does until that installation is kept. It is called
// before any test: until the authority takes the place of that of [answerOwned] everywhere, the
// API server gets no answer of virt-controller.
func keepOnce(ctx context.Context) error {
	cfg := rest.CopyConfig(world.config)
	cfg.Impersonate.UserName = "system:serviceaccount:" + home + ":virt-certificates"
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	meta, err := metadata.NewForConfig(cfg)
	if err != nil {
		return err
	}
	var log bytes.Buffer // no one writes to it any more when it is read
	a, err := authority.New(authority.Config{Kube: kube, Metadata: meta, Namespace: home, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { _ = a.Run(ctx) })
	end := time.Now().Add(timeout)
	for err = kept(ctx); err != nil && time.Now().Before(end); err = kept(ctx) {
		time.Sleep(20 * time.Millisecond)
	}
	cancel()
	if wg.Wait(); err != nil {
		return fmt.Errorf("%w; the authority says: %s", err, &log)
	}
	return nil
}

// TestAttackATokenOfVirtControllerDoesNotChangeTheWebhooks tries what its thief would
// take the cluster with.
func TestAttackATokenOfVirtControllerDoesNotChangeTheWebhooks(t *testing.T) {
	t.Parallel()
	newSpace(t)
	keepInstallation(t)
	kube := tokenOf(t, "virt-controller")
	ctx, get := t.Context(), metav1.GetOptions{}
	mutating, validating := kube.AdmissionregistrationV1().MutatingWebhookConfigurations(), kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	everything := []byte(`[{"op":"add","path":"/webhooks/0/rules","value":[{"apiGroups":["*"],"apiVersions":["*"],"operations":["*"],"resources":["*/*"]}]}]`)
	m, err := world.kube.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, certificate.Webhooks, get)
	require.NoError(t, err)
	v, err := world.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, certificate.Webhooks, get)
	require.NoError(t, err)
	other := m.DeepCopy()
	other.ObjectMeta = metav1.ObjectMeta{Name: "thief.example.com"}
	another := v.DeepCopy()
	another.ObjectMeta = other.ObjectMeta
	secrets := kube.CoreV1().Secrets(home)
	for what, try := range map[string]func() error{
		"patch the mutating webhooks": func() error {
			_, err := mutating.Patch(ctx, m.Name, types.JSONPatchType, everything, metav1.PatchOptions{})
			return err
		},
		"patch the validating webhooks": func() error {
			_, err := validating.Patch(ctx, v.Name, types.JSONPatchType, everything, metav1.PatchOptions{})
			return err
		},
		"update the mutating webhooks":   func() error { _, err := mutating.Update(ctx, m, metav1.UpdateOptions{}); return err },
		"update the validating webhooks": func() error { _, err := validating.Update(ctx, v, metav1.UpdateOptions{}); return err },
		"create mutating webhooks":       func() error { _, err := mutating.Create(ctx, other, metav1.CreateOptions{}); return err },
		"create validating webhooks":     func() error { _, err := validating.Create(ctx, another, metav1.CreateOptions{}); return err },
		"delete the validating webhooks": func() error { return validating.Delete(ctx, v.Name, metav1.DeleteOptions{}) },
		"read the mutating webhooks":     func() error { _, err := mutating.Get(ctx, m.Name, get); return err },
		"read the key of the authority":  func() error { _, err := secrets.Get(ctx, certificate.AuthoritySecret, get); return err },
		"list the key of the authority": func() error {
			_, err := secrets.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + certificate.AuthoritySecret})
			return err
		},
		"write the key of the authority": func() error {
			_, err := secrets.Update(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: certificate.AuthoritySecret}}, metav1.UpdateOptions{})
			return err
		},
		"read another Secret": func() error { _, err := secrets.Get(ctx, "other", get); return err },
		"list all Secrets":    func() error { _, err := secrets.List(ctx, metav1.ListOptions{}); return err },
		"create a Secret": func() error {
			_, err := secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, metav1.CreateOptions{})
			return err
		},
		"read its Secret elsewhere": func() error {
			_, err := kube.CoreV1().Secrets("default").Get(ctx, certificate.ServingSecret, get)
			return err
		},
		"get a token of virt-certificates": func() error {
			_, err := kube.CoreV1().ServiceAccounts(home).CreateToken(ctx, "virt-certificates", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
			return err
		},
		"change the Deployment that holds it": func() error {
			_, err := kube.AppsV1().Deployments(home).Patch(ctx, "virt-certificates", types.MergePatchType, []byte(`{"spec":{"paused":true}}`), metav1.PatchOptions{})
			return err
		},
	} {
		require.True(t, apierrors.IsForbidden(try()), what)
	}

	// What it may write decides nothing, and is corrected.
	stolen, _, err := certificate.Policy{Name: "thief", Hosts: []string{"virt-controller.kubevirt.svc"}}.Renew(certificate.Bundle{}, time.Now())
	require.NoError(t, err)
	own, err := secrets.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + certificate.ServingSecret})
	require.NoError(t, err)
	require.Len(t, own.Items, 1)
	require.NotContains(t, own.Items[0].Data, certificate.AuthorityKeyKey)
	// requireSigned checks that no key in the Secret is that of an authority.
	requireSigned := func(s corev1.Secret) {
		block, _ := pem.Decode(s.Data[corev1.TLSCertKey])
		c, err := x509.ParseCertificate(block.Bytes)
		require.NoError(t, err)
		require.False(t, c.IsCA)
	}
	requireSigned(own.Items[0])
	changed := own.Items[0].DeepCopy()
	changed.Data[certificate.AuthoritiesKey], changed.Data[certificate.PathKey] = stolen.Authorities, []byte("chosen")
	changed.Data[corev1.TLSCertKey], changed.Data[corev1.TLSPrivateKeyKey] = stolen.Certificate, stolen.Key
	_, err = secrets.Update(ctx, changed, metav1.UpdateOptions{})
	if err == nil {
		eventually(t, func() error {
			s, err := world.kube.CoreV1().Secrets(home).Get(ctx, certificate.ServingSecret, get)
			if err == nil && (bytes.Equal(s.Data[corev1.TLSCertKey], stolen.Certificate) || string(s.Data[certificate.PathKey]) == "chosen") {
				err = errors.New("it is not corrected yet")
			}
			return err
		})
	} else {
		require.True(t, apierrors.IsForbidden(err), "%v", err)
	}
	after, err := world.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, certificate.Webhooks, get)
	require.NoError(t, err)
	require.Equal(t, v.Webhooks, after.Webhooks)
}

func TestVirtCertificatesMayKeepTheAuthorityAndNoMore(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	keepInstallation(t)
	kube := tokenOf(t, "virt-certificates")
	ctx, get := t.Context(), metav1.GetOptions{}
	before, err := world.kube.CoreV1().Secrets(home).Get(ctx, certificate.AuthoritySecret, get)
	require.NoError(t, err)
	// A second installation changes nothing of it.
	said, err := kubectl(t, "", "apply", "--server-side", "--force-conflicts", "-k", world.manifests)
	require.NoError(t, err, said)
	after, err := world.kube.CoreV1().Secrets(home).Get(ctx, certificate.AuthoritySecret, get)
	require.NoError(t, err)
	require.Equal(t, before.Data, after.Data)

	patch := []byte(`{"metadata":{"labels":{"x":"y"}}}`)
	for what, try := range map[string]func() error{
		"another Secret": func() error { _, err := kube.CoreV1().Secrets(home).Get(ctx, "other", get); return err },
		"all Secrets":    func() error { _, err := kube.CoreV1().Secrets(home).List(ctx, metav1.ListOptions{}); return err },
		"a new Secret": func() error {
			_, err := kube.CoreV1().Secrets(home).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, metav1.CreateOptions{})
			return err
		},
		"its Secret elsewhere": func() error {
			_, err := kube.CoreV1().Secrets(s.name).Get(ctx, certificate.AuthoritySecret, get)
			return err
		},
		"another webhook": func() error {
			_, err := kube.AdmissionregistrationV1().MutatingWebhookConfigurations().Patch(ctx, "other", types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		},
		"pods": func() error { _, err := kube.CoreV1().Pods(s.name).List(ctx, metav1.ListOptions{}); return err },
	} {
		require.True(t, apierrors.IsForbidden(try()), what)
	}
}

// Another program may issue the certificate, as cert-manager does: then virt-certificates
// is not installed, and the administrator sets the path.
func TestACertificateOfAnotherIssuerIsServed(t *testing.T) {
	t.Parallel()
	w := newWebhooks(t, func(w *webhooks) { w.config.Serving = "issued" })
	secrets := world.kube.CoreV1().Secrets(w.name)
	require.NoError(t, secrets.Delete(t.Context(), "issued", metav1.DeleteOptions{}))
	w.foreign = true
	b, _, err := certificate.Policy{Name: "issuer", Hosts: []string{w.config.Service + "." + w.name + ".svc"}}.Renew(certificate.Bundle{}, time.Now())
	require.NoError(t, err)
	_, err = secrets.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "issued"}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{"ca.crt": b.Authorities, "tls.crt": b.Certificate, "tls.key": b.Key, certificate.PathKey: []byte("chosen")},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	w.trust(b.Authorities, "chosen")
	w.serve()
	require.Positive(t, w.reviews.Load())

	// Its successor is served without a restart.
	w.fresh = true
	next, _, err := certificate.Policy{Name: "issuer", Hosts: []string{w.config.Service + "." + w.name + ".svc"}}.Renew(certificate.Bundle{}, time.Now())
	require.NoError(t, err)
	w.trust(append(bytes.Clone(next.Authorities), b.Authorities...), "chosen")
	s, err := secrets.Get(t.Context(), "issued", metav1.GetOptions{})
	require.NoError(t, err)
	s.Data["tls.crt"], s.Data["tls.key"] = next.Certificate, next.Key
	_, err = secrets.Update(t.Context(), s, metav1.UpdateOptions{})
	require.NoError(t, err)
	eventually(t, func() error {
		pair, err := w.served.Certificate(nil)
		if block, _ := pem.Decode(next.Certificate); err == nil && !bytes.Equal(pair.Certificate[0], block.Bytes) {
			err = errors.New("it is not served yet")
		}
		return err
	})
	eventually(t, w.inForce)
}

// trust writes the authorities and the paths into the webhooks, as an administrator
// does.
func (w *webhooks) trust(authorities []byte, token string) {
	w.t.Helper()
	kube := world.kube.AdmissionregistrationV1()
	m, err := kube.MutatingWebhookConfigurations().Get(w.t.Context(), w.config.Webhooks, metav1.GetOptions{})
	require.NoError(w.t, err)
	for i := range m.Webhooks {
		m.Webhooks[i].ClientConfig.CABundle, m.Webhooks[i].ClientConfig.Service.Path = authorities, new(certificate.Path(m.Webhooks[i].Name, token))
	}
	_, err = kube.MutatingWebhookConfigurations().Update(w.t.Context(), m, metav1.UpdateOptions{})
	require.NoError(w.t, err)
	v, err := kube.ValidatingWebhookConfigurations().Get(w.t.Context(), w.config.Webhooks, metav1.GetOptions{})
	require.NoError(w.t, err)
	for i := range v.Webhooks {
		v.Webhooks[i].ClientConfig.CABundle, v.Webhooks[i].ClientConfig.Service.Path = authorities, new(certificate.Path(v.Webhooks[i].Name, token))
	}
	_, err = kube.ValidatingWebhookConfigurations().Update(w.t.Context(), v, metav1.UpdateOptions{})
	require.NoError(w.t, err)
}
