package admission

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	admissioninformers "k8s.io/client-go/informers/admissionregistration/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/internal/certificate"
	"github.com/podvisor/podvisor/internal/reconcile"
)

// CertificatesConfig is the configuration of Certificates.
type CertificatesConfig struct {
	// Kube holds the Secret and the webhook configurations. Required.
	Kube kubernetes.Interface
	// Namespace is where the Secret and the Service are. Required.
	Namespace string
	// Service is the Service that the API server calls. Empty: virt-controller.
	Service string
	// Secret holds the certificate and its authority. It must exist, and may be
	// empty. Empty: virt-controller-certificates.
	Secret string
	// Webhooks is the name of the MutatingWebhookConfiguration and of the
	// ValidatingWebhookConfiguration. Neither has to exist. Empty:
	// virt-controller.kubevirt.io.
	Webhooks string
	// AuthorityLife is how long an authority is trusted. 0: 7 days.
	AuthorityLife time.Duration
	// Life is how long a certificate is valid, at most half of AuthorityLife. 0: a
	// day.
	Life time.Duration
	// Spread is how long the API server and other replicas have to read a new
	// authority before it signs. 0: a minute.
	Spread time.Duration
	// Changed is called after each change of what [Certificates.Guarded] answers, and
	// must not block. Nil: nothing is.
	Changed func()
	// Logger logs each write. Nil: nothing is logged.
	Logger *slog.Logger
	// Now is the clock. Nil: time.Now.
	Now func() time.Time
}

// Certificates keeps the certificate of the webhooks in a Secret that all replicas
// share, renews it before it expires, and writes the authority that signed it into
// the webhook configurations. It is made by NewCertificates and run once.
type Certificates struct {
	cfg    CertificatesConfig
	policy certificate.Policy
	log    *slog.Logger
	loop   *reconcile.Loop

	secrets, mutating, validating cache.SharedIndexInformer

	pair   atomic.Pointer[tls.Certificate]
	token  atomic.Pointer[string] // the last part of the secret paths
	absent atomic.Bool            // there is no Secret, or it may not be read
}

// theKey is the one key of the loop.
const theKey = "certificates"

// NewCertificates makes Certificates. It touches nothing until it runs.
func NewCertificates(c CertificatesConfig) (*Certificates, error) {
	if c.Kube == nil || c.Namespace == "" {
		return nil, errors.New("configure the certificates: kube and the namespace are required")
	}
	c.Service = cmp.Or(c.Service, "virt-controller")
	c.Secret = cmp.Or(c.Secret, "virt-controller-certificates")
	c.Webhooks = cmp.Or(c.Webhooks, "virt-controller.kubevirt.io")
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	k := &Certificates{cfg: c, log: c.Logger, policy: certificate.Policy{
		Name: c.Service + "." + c.Namespace, Hosts: []string{c.Service + "." + c.Namespace + ".svc"},
		AuthorityLife: c.AuthorityLife, Life: c.Life, Spread: c.Spread,
	}}
	k.loop = reconcile.New(reconcile.Config{Name: "certificates", Do: k.reconcile, Workers: 1, Logger: c.Logger})
	named := func(name string) func(*metav1.ListOptions) {
		return func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		}
	}
	k.secrets = coreinformers.NewFilteredSecretInformer(c.Kube, c.Namespace, 0, cache.Indexers{}, named(c.Secret))
	k.mutating = admissioninformers.NewFilteredMutatingWebhookConfigurationInformer(c.Kube, 0, cache.Indexers{}, named(c.Webhooks))
	k.validating = admissioninformers.NewFilteredValidatingWebhookConfigurationInformer(c.Kube, 0, cache.Indexers{}, named(c.Webhooks))
	return k, k.watch()
}

func (k *Certificates) watch() error {
	again := func(any) { k.loop.Add(theKey) }
	var errs []error
	for _, i := range k.informers() {
		_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: again, UpdateFunc: func(_, o any) { again(o) }, DeleteFunc: again})
		errs = append(errs, err)
	}
	if k.cfg.Changed != nil {
		changed := func(any) { k.cfg.Changed() }
		_, err := k.validating.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: changed, DeleteFunc: changed})
		errs = append(errs, err)
	}
	errs = append(errs, k.secrets.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		// Without the right to read the Secret, all but the webhooks is served.
		if apierrors.IsForbidden(err) {
			k.without(err)
		}
		cache.DefaultWatchErrorHandler(ctx, r, err)
	}))
	return errors.Join(errs...)
}

func (k *Certificates) informers() []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{k.secrets, k.mutating, k.validating}
}

// Run keeps the certificate until ctx ends.
func (k *Certificates) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for _, i := range k.informers() {
		wg.Go(func() { i.RunWithContext(ctx) })
	}
	// The configurations may be created later, or not at all.
	if !cache.WaitForCacheSync(ctx.Done(), k.secrets.HasSynced) {
		return nil
	}
	k.loop.Add(theKey)
	k.loop.Run(ctx)
	return nil
}

// Certificate is the certificate of the webhooks, for a tls.Config. It is nil while
// there is none.
func (k *Certificates) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return k.pair.Load(), nil
}

// EvictionPath is the path below [EvictionPath] at which the API server has
// evictions reviewed, which is written into the webhooks whose names begin with
// "evictions.". It is a secret: the Secret holds it, and reading it
// takes the right to read the cluster's webhook configurations. It is empty while
// there is none.
func (k *Certificates) EvictionPath() string { return k.secretPath(EvictionPath) }

// UninstallPath is the same below [UninstallPath], for the webhooks whose names
// begin with "uninstall.".
func (k *Certificates) UninstallPath() string { return k.secretPath(UninstallPath) }

func (k *Certificates) secretPath(below string) string {
	if token := k.token.Load(); token != nil {
		return below + *token
	}
	return ""
}

// Guarded reports whether the deletion of Podvisor is reviewed: whether the
// ValidatingWebhookConfiguration exists, or that is not known.
func (k *Certificates) Guarded() bool {
	_, exists := cached[*admissionregistrationv1.ValidatingWebhookConfiguration](k.validating, k.cfg.Webhooks)
	return exists || !k.validating.HasSynced()
}

// Ready says why the webhooks cannot be served yet. Where they are not installed
// there is nothing to wait for.
func (k *Certificates) Ready() error {
	if k.pair.Load() == nil && !k.absent.Load() {
		return errors.New("the webhooks have no certificate yet")
	}
	return nil
}

// without goes on without webhooks, until there is a Secret.
func (k *Certificates) without(err error) {
	if !k.absent.Swap(true) {
		k.log.Warn("serve no webhooks", "err", err)
	}
}

// reconcile renews what is due, serves it, and has it trusted.
func (k *Certificates) reconcile(ctx context.Context, _ string) (time.Duration, error) {
	s, err := k.secret()
	if err != nil {
		return 0, err
	}
	if s == nil {
		k.without(fmt.Errorf("read Secret %s/%s: it does not exist", k.cfg.Namespace, k.cfg.Secret))
		return 0, nil
	}
	have := bundleOf(s)
	want, after, err := k.policy.Renew(have, k.cfg.Now())
	if err != nil {
		return 0, err
	}
	token := string(s.Data[tokenKey])
	if token != "" {
		k.token.Store(&token)
	}
	if k.mustWait(have, want) {
		want, after = have, time.Second
	}
	if !want.Equal(have) || token == "" {
		// The API server allows small letters and digits only.
		token = cmp.Or(token, strings.ToLower(rand.Text()))
		if err := k.store(ctx, s, want, token); err != nil {
			return 0, err
		}
	}
	pair, err := want.KeyPair()
	if err != nil {
		return 0, err
	}
	k.token.Store(&token)
	k.pair.Store(pair)
	return after, k.trust(ctx, want.Authorities)
}

// mustWait says that the next authority would sign what is served, while the
// cached webhook configurations have only the one before: then what is served
// stays, as long as it is valid.
func (k *Certificates) mustWait(have, want certificate.Bundle) bool {
	if !bytes.Equal(have.Authorities, want.Authorities) || bytes.Equal(have.Certificate, want.Certificate) || k.trusted(have.Authorities) {
		return false
	}
	is, err := have.KeyPair()
	next, err2 := want.KeyPair()
	return err == nil && err2 == nil && k.cfg.Now().Before(is.Leaf.NotAfter) && !bytes.Equal(is.Leaf.AuthorityKeyId, next.Leaf.AuthorityKeyId)
}

// secret is the cached Secret, or nil if there is none.
func (k *Certificates) secret() (*corev1.Secret, error) {
	o, ok, err := k.secrets.GetStore().GetByKey(k.cfg.Namespace + "/" + k.cfg.Secret)
	if err != nil || !ok {
		return nil, err
	}
	return o.(*corev1.Secret), nil
}

// The keys of the Secret.
const (
	authoritiesKey  = "ca.crt"
	authorityKeyKey = "ca.key"
	tokenKey        = "evictions"
)

func bundleOf(s *corev1.Secret) certificate.Bundle {
	return certificate.Bundle{
		Authorities: s.Data[authoritiesKey], AuthorityKey: s.Data[authorityKeyKey],
		Certificate: s.Data[corev1.TLSCertKey], Key: s.Data[corev1.TLSPrivateKeyKey],
	}
}

// store writes the bundle and the token of the eviction path. Of several replicas
// that do so at the same time one succeeds; the others get a conflict, and then read
// what that one wrote.
func (k *Certificates) store(ctx context.Context, s *corev1.Secret, b certificate.Bundle, token string) error {
	s = s.DeepCopy()
	s.Data = map[string][]byte{
		authoritiesKey: b.Authorities, authorityKeyKey: b.AuthorityKey,
		corev1.TLSCertKey: b.Certificate, corev1.TLSPrivateKeyKey: b.Key,
		tokenKey: []byte(token),
	}
	if _, err := k.cfg.Kube.CoreV1().Secrets(s.Namespace).Update(ctx, s, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write the certificate to Secret %s/%s: %w", s.Namespace, s.Name, err)
	}
	k.log.Info("renewed the certificate", "secret", s.Namespace+"/"+s.Name)
	return nil
}
