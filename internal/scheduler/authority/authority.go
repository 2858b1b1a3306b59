package authority

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/internal/certificate"
	"github.com/podvisor/podvisor/internal/reconcile"
)

// Config is the configuration of an Authority.
type Config struct {
	// Kube holds the Secrets and the webhook configurations. Required.
	Kube kubernetes.Interface
	// Metadata lists the objects of scheduler.GuestKinds, also those that cannot be decoded.
	// Required.
	Metadata metadata.Interface
	// Dynamic holds the APIServices, none of which has to exist. Nil: they are not
	// written.
	Dynamic dynamic.Interface
	// Namespace is where the Secrets and the Service are. Required.
	Namespace string
	// Service is the Service that the API server calls. Empty: virt-controller.
	Service string
	// Secret holds the authority with its key. It must exist, and may be empty. Empty:
	// virt-certificates.
	Secret string
	// Serving is the Secret that virt-controller serves with. It must exist, and may be
	// empty. Empty: virt-controller-certificates.
	Serving string
	// Webhooks is the name of the MutatingWebhookConfiguration and of the
	// ValidatingWebhookConfiguration. Neither has to exist. Empty:
	// virt-controller.kubevirt.io.
	Webhooks string
	// AuthorityLife is how long an authority is trusted. 0: 7 days.
	AuthorityLife time.Duration
	// Life is how long a certificate is valid, at most half of AuthorityLife. 0: a
	// day.
	Life time.Duration
	// Spread is how long API servers have to read a new authority before it signs. 0:
	// 10 minutes.
	Spread time.Duration
	// Pause is the least time between two corrections of the Secret that
	// virt-controller serves with. 0: 5 seconds.
	Pause time.Duration
	// Logger logs each write. Nil: nothing is logged.
	Logger *slog.Logger
	// Now is the clock. Nil: time.Now.
	Now func() time.Time
}

func (c Config) complete() Config {
	c.Service = cmp.Or(c.Service, certificate.Service)
	c.Secret = cmp.Or(c.Secret, certificate.AuthoritySecret)
	c.Serving = cmp.Or(c.Serving, certificate.ServingSecret)
	c.Webhooks = cmp.Or(c.Webhooks, certificate.Webhooks)
	c.Spread = cmp.Or(c.Spread, 10*time.Minute)
	c.Pause = cmp.Or(c.Pause, 5*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Authority keeps the authority, the certificate that it signs, and what the API
// server knows of both. It is made by New and run once.
type Authority struct {
	cfg    Config
	policy certificate.Policy
	log    *slog.Logger
	loop   *reconcile.Loop
	once   reconcile.Once

	secret, serving cache.SharedIndexInformer
	// registrations are what the API server knows the certificate by.
	registrations []registration
	// corrected is when the Secret of virt-controller was last written.
	corrected time.Time
}

// theKey is the one key of the loop.
const theKey = "authority"

// New makes an Authority. It touches nothing until it runs.
func New(c Config) (*Authority, error) {
	if err := reconcile.Missing("authority.Config", map[string]bool{"Kube": c.Kube == nil, "Metadata": c.Metadata == nil, "Namespace": c.Namespace == ""}); err != nil {
		return nil, err
	}
	c = c.complete()
	a := &Authority{cfg: c, log: c.Logger, policy: certificate.Policy{
		Name: c.Service + "." + c.Namespace, Hosts: []string{c.Service + "." + c.Namespace + ".svc"},
		AuthorityLife: c.AuthorityLife, Life: c.Life, Spread: c.Spread,
	}}
	a.loop = reconcile.New(reconcile.Config{Name: "authority", Do: a.reconcile, Workers: 1, Logger: c.Logger})
	a.secret = coreinformers.NewFilteredSecretInformer(c.Kube, c.Namespace, 0, cache.Indexers{}, named(c.Secret))
	a.serving = coreinformers.NewFilteredSecretInformer(c.Kube, c.Namespace, 0, cache.Indexers{}, named(c.Serving))
	a.registrations = []registration{mutatingWebhooks(c), validatingWebhooks(c)}
	if c.Dynamic != nil {
		for _, name := range certificate.APIServices() {
			a.registrations = append(a.registrations, apiService(c, name))
		}
	}
	var errs []error
	again := func(any) { a.loop.Add(theKey) }
	for _, i := range a.informers() {
		_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: again, UpdateFunc: func(_, o any) { again(o) }, DeleteFunc: again})
		errs = append(errs, err)
	}
	return a, errors.Join(errs...)
}

// named selects the object of that name.
func named(name string) func(*metav1.ListOptions) {
	return func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}
}

func (a *Authority) informers() []cache.SharedIndexInformer {
	out := []cache.SharedIndexInformer{a.secret, a.serving}
	for _, r := range a.registrations {
		out = append(out, r.informer)
	}
	return out
}

// Run keeps the authority until ctx ends. It is called once: a second call is an error.
func (a *Authority) Run(ctx context.Context) error {
	if err := a.once.Begin("authority"); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(reconcile.WithClientLog(ctx, a.log))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for _, i := range a.informers() {
		wg.Go(func() { i.RunWithContext(ctx) })
	}
	// The registrations may be created later, or not at all.
	if !cache.WaitForCacheSync(ctx.Done(), a.secret.HasSynced, a.serving.HasSynced) {
		return nil
	}
	a.loop.Add(theKey)
	a.loop.Run(ctx)
	return nil
}

// reconcile renews what is due, has it trusted, has it served, and holds the webhooks.
func (a *Authority) reconcile(ctx context.Context, _ string) (time.Duration, error) {
	own, ok := cached[*corev1.Secret](a.secret, a.cfg.Namespace+"/"+a.cfg.Secret)
	serving, okServing := cached[*corev1.Secret](a.serving, a.cfg.Namespace+"/"+a.cfg.Serving)
	if !ok || !okServing {
		a.log.Warn("keep no certificate until both Secrets exist", "namespace", a.cfg.Namespace, "authority", a.cfg.Secret, "serving", a.cfg.Serving)
		return 0, nil
	}
	have := bundleOf(own, serving)
	want, after, err := a.policy.Renew(have, a.cfg.Now())
	if err != nil {
		return 0, err
	}
	// The API server allows small letters and digits only.
	token := cmp.Or(string(own.Data[certificate.PathKey]), strings.ToLower(rand.Text()))
	if !bytes.Equal(have.Authorities, want.Authorities) {
		if is, err := a.isCurrent(ctx, serving); err != nil || !is {
			return cacheLag, err
		}
	}
	// The key that signed the certificate that bridges the time to the next authority is
	// not there any more once that authority is kept.
	if bridges(have, want) {
		if later, err := a.serve(ctx, serving, want, token); err != nil || later > 0 {
			return later, err
		}
	}
	if err := a.keep(ctx, own, want, token); err != nil {
		return 0, err
	}
	err = a.register(ctx, want.Authorities, token)
	if a.mustWait(have, want, token) {
		want, after = have, time.Second
	}
	later, errServing := a.serve(ctx, serving, want, token)
	unheld, errHold := a.hold(ctx, serving)
	return soonest(after, later, unheld), errors.Join(err, errServing, errHold)
}

// cacheLag is when the caches are looked at again that lack what was written last.
const cacheLag = 100 * time.Millisecond

// isCurrent says that the Secret is as the API server has it. A next authority takes the
// place of the key that signed the certificate, which a cache without that certificate
// does not show: what was served then would not be trusted.
func (a *Authority) isCurrent(ctx context.Context, s *corev1.Secret) (bool, error) {
	o := metav1.ListOptions{}
	named(s.Name)(&o)
	l, err := a.cfg.Kube.CoreV1().Secrets(s.Namespace).List(ctx, o)
	if err != nil {
		return false, fmt.Errorf("list Secret %s/%s: %w", s.Namespace, s.Name, err)
	}
	return slices.ContainsFunc(l.Items, func(is corev1.Secret) bool {
		return is.Name == s.Name && is.ResourceVersion == s.ResourceVersion
	}), nil
}

// soonest is the shortest of the times that is not 0.
func soonest(all ...time.Duration) time.Duration {
	least := time.Duration(0)
	for _, d := range all {
		if d > 0 && (least == 0 || d < least) {
			least = d
		}
	}
	return least
}

// bundleOf takes the authorities from the own Secret only: virt-controller, which
// writes the other one too, must not choose whom the API server trusts.
func bundleOf(own, serving *corev1.Secret) certificate.Bundle {
	return certificate.Bundle{
		Authorities: own.Data[certificate.AuthoritiesKey], AuthorityKey: own.Data[certificate.AuthorityKeyKey],
		Certificate: serving.Data[corev1.TLSCertKey], Key: serving.Data[corev1.TLSPrivateKeyKey],
	}
}

// bridges says that the next authority is there, and the certificate is signed by the
// one that signed the certificate before.
func bridges(have, want certificate.Bundle) bool {
	if bytes.Equal(have.Authorities, want.Authorities) {
		return false
	}
	is, err := have.KeyPair()
	next, err2 := want.KeyPair()
	return err == nil && err2 == nil && bytes.Equal(is.Leaf.AuthorityKeyId, next.Leaf.AuthorityKeyId)
}

// mustWait says that the next certificate is of another authority than the one that is
// served, and the cached registrations do not have that authority yet: then what is
// served stays, as long as it is valid.
func (a *Authority) mustWait(have, want certificate.Bundle, token string) bool {
	if bytes.Equal(have.Certificate, want.Certificate) || a.registered(want.Authorities, token) {
		return false
	}
	is, err := have.KeyPair()
	next, err2 := want.KeyPair()
	return err == nil && err2 == nil && a.cfg.Now().Before(is.Leaf.NotAfter) && !bytes.Equal(is.Leaf.AuthorityKeyId, next.Leaf.AuthorityKeyId)
}

// keep stores the authority before anything depends on it.
func (a *Authority) keep(ctx context.Context, own *corev1.Secret, b certificate.Bundle, token string) error {
	data := map[string][]byte{
		certificate.AuthoritiesKey: b.Authorities, certificate.AuthorityKeyKey: b.AuthorityKey, certificate.PathKey: []byte(token),
	}
	return a.write(ctx, own, data, "kept the authority")
}

// serve stores what virt-controller serves with, and nothing else but its request: an
// earlier version had the key of the authority there. If another has written it a
// moment ago, it is corrected later.
func (a *Authority) serve(ctx context.Context, serving *corev1.Secret, b certificate.Bundle, token string) (later time.Duration, err error) {
	data := map[string][]byte{
		certificate.AuthoritiesKey: b.Authorities, corev1.TLSCertKey: b.Certificate, corev1.TLSPrivateKeyKey: b.Key, certificate.PathKey: []byte(token),
	}
	if request, ok := serving.Data[certificate.HoldKey]; ok {
		data[certificate.HoldKey] = request
	}
	if same(serving.Data, data) {
		return 0, nil
	}
	now := a.cfg.Now()
	if left := a.corrected.Add(a.cfg.Pause).Sub(now); left > 0 {
		return left, nil
	}
	if err := a.write(ctx, serving, data, "renewed the certificate"); err != nil {
		return 0, err
	}
	a.corrected = now
	return 0, nil
}

// write makes the data of the Secret what is wanted, if it is not that already. If
// another has changed the Secret since it was read, the API server refuses.
func (a *Authority) write(ctx context.Context, s *corev1.Secret, data map[string][]byte, what string) error {
	if same(s.Data, data) {
		return nil
	}
	s = s.DeepCopy()
	s.Data = data
	if _, err := a.cfg.Kube.CoreV1().Secrets(s.Namespace).Update(ctx, s, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write Secret %s/%s: %w", s.Namespace, s.Name, err)
	}
	a.log.Info(what, "secret", s.Namespace+"/"+s.Name)
	return nil
}

func same(a, b map[string][]byte) bool {
	return maps.EqualFunc(a, b, bytes.Equal)
}

// cached is the object of the key in the informer's cache, if there is one.
func cached[T any](i cache.SharedIndexInformer, key string) (t T, ok bool) {
	o, found, err := i.GetStore().GetByKey(key)
	if err != nil || !found {
		return t, false
	}
	t, ok = o.(T)
	return t, ok
}
