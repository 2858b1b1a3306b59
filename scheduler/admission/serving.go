package admission

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"slices"
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

// ServingConfig is the configuration of Serving.
type ServingConfig struct {
	// Kube reads the Secret and the ValidatingWebhookConfiguration, and writes the request
	// to hold it into the Secret. Required.
	Kube kubernetes.Interface
	// Namespace is where the Secret is. Required.
	Namespace string
	// Secret has the certificate, of whoever issues it, as a Secret of the type
	// kubernetes.io/tls has, and the last part of the secret paths at the key "path".
	// Empty: virt-controller-certificates.
	Secret string
	// Webhooks is the name of the ValidatingWebhookConfiguration. It need not exist.
	// Empty: virt-controller.kubevirt.io.
	Webhooks string
	// HoldWait is how long [Serving.Hold] waits for its request to be fulfilled. 0: 3
	// seconds, which is less than the timeoutSeconds of every webhook that holds.
	HoldWait time.Duration
	// Changed is called after each change of what [Serving.Guarded] answers, and must
	// not block. Nil: nothing is.
	Changed func()
	// Logger logs each certificate. Nil: nothing is logged.
	Logger *slog.Logger
}

// Serving is what virt-controller serves with: the certificate and the secret paths
// that are in its Secret. It follows the Secret, so that nothing is restarted when the
// certificate is renewed. It is made by NewServing and run once.
type Serving struct {
	cfg  ServingConfig
	log  *slog.Logger
	once reconcile.Once

	secrets, validating cache.SharedIndexInformer

	pair   atomic.Pointer[tls.Certificate]
	token  atomic.Pointer[string] // the last part of the secret paths
	absent atomic.Bool            // there is no Secret, or it may not be read
}

// NewServing makes Serving. It touches nothing until it runs.
func NewServing(c ServingConfig) (*Serving, error) {
	if err := reconcile.Missing("admission.ServingConfig", map[string]bool{"Kube": c.Kube == nil, "Namespace": c.Namespace == ""}); err != nil {
		return nil, err
	}
	c.Secret = cmp.Or(c.Secret, certificate.ServingSecret)
	c.Webhooks = cmp.Or(c.Webhooks, certificate.Webhooks)
	c.HoldWait = cmp.Or(c.HoldWait, 3*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Serving{cfg: c, log: c.Logger}
	named := func(name string) func(*metav1.ListOptions) {
		return func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		}
	}
	s.secrets = coreinformers.NewFilteredSecretInformer(c.Kube, c.Namespace, 0, cache.Indexers{}, named(c.Secret))
	s.validating = admissioninformers.NewFilteredValidatingWebhookConfigurationInformer(c.Kube, 0, cache.Indexers{}, named(c.Webhooks))
	return s, s.watch()
}

func (s *Serving) watch() error {
	take := func(o any) { s.take(o.(*corev1.Secret)) }
	_, err := s.secrets.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: take, UpdateFunc: func(_, o any) { take(o) }})
	errs := []error{err}
	if s.cfg.Changed != nil {
		changed := func(any) { s.cfg.Changed() }
		_, err := s.validating.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: changed, DeleteFunc: changed})
		errs = append(errs, err)
	}
	errs = append(errs, s.secrets.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		// Without the right to read the Secret, all but the webhooks is served.
		if apierrors.IsForbidden(err) {
			s.without(err)
		}
		cache.DefaultWatchErrorHandler(ctx, r, err)
	}))
	return errors.Join(errs...)
}

// Run follows the Secret until ctx ends. It is called once: a second call is an error.
func (s *Serving) Run(ctx context.Context) error {
	if err := s.once.Begin("serving certificate"); err != nil {
		return err
	}
	ctx = reconcile.WithClientLog(ctx, s.log)
	var wg sync.WaitGroup
	wg.Go(func() { s.secrets.RunWithContext(ctx) })
	wg.Go(func() { s.validating.RunWithContext(ctx) })
	if cache.WaitForCacheSync(ctx.Done(), s.secrets.HasSynced) && len(s.secrets.GetStore().List()) == 0 {
		s.without(fmt.Errorf("read Secret %s/%s: it does not exist", s.cfg.Namespace, s.cfg.Secret))
	}
	wg.Wait()
	return nil
}

// take serves with what is in the Secret. Of a Secret whose certificate and key are
// not a pair nothing is taken.
func (s *Serving) take(secret *corev1.Secret) {
	if token := string(secret.Data[certificate.PathKey]); token != "" {
		s.token.Store(&token)
	}
	b := certificate.Bundle{Certificate: secret.Data[corev1.TLSCertKey], Key: secret.Data[corev1.TLSPrivateKeyKey]}
	if len(b.Certificate) == 0 && len(b.Key) == 0 {
		return // it will be written
	}
	pair, err := b.KeyPair()
	if err != nil {
		s.log.Warn("go on with the certificate before", "secret", secret.Namespace+"/"+secret.Name, "err", err)
		return
	}
	if before := s.pair.Swap(pair); before == nil || !bytes.Equal(before.Certificate[0], pair.Certificate[0]) {
		s.log.Info("serve with a new certificate", "secret", secret.Namespace+"/"+secret.Name, "until", pair.Leaf.NotAfter)
	}
}

// Certificate is the certificate to serve with, for a tls.Config. It is nil while
// there is none.
func (s *Serving) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return s.pair.Load(), nil
}

// Token is the last part of the paths at which the API server requests reviews. It is
// a secret: reading it takes the right to read the Secret or the webhook
// configurations. It is empty while there is none.
func (s *Serving) Token() string {
	if token := s.token.Load(); token != nil {
		return *token
	}
	return ""
}

// Guarded reports whether the deletion of Podvisor is reviewed: whether the
// ValidatingWebhookConfiguration exists, or that is not known.
func (s *Serving) Guarded() bool {
	return s.configuration() != nil || !s.validating.HasSynced()
}

// configuration is the cached ValidatingWebhookConfiguration, or nil if there is none.
func (s *Serving) configuration() *admissionregistrationv1.ValidatingWebhookConfiguration {
	o, found, err := s.validating.GetStore().GetByKey(s.cfg.Webhooks)
	if err != nil || !found {
		return nil
	}
	c, _ := o.(*admissionregistrationv1.ValidatingWebhookConfiguration)
	return c
}

// Ready says why the webhooks cannot be served yet. Where they are not installed
// there is nothing to wait for.
func (s *Serving) Ready() error {
	if s.pair.Load() == nil && !s.absent.Load() {
		return errors.New("the webhooks have no certificate yet: virt-certificates has not written it into the Secret")
	}
	return nil
}

// without goes on without webhooks, until there is a Secret.
func (s *Serving) without(err error) {
	if !s.absent.Swap(true) {
		s.log.Warn("serve no webhooks", "err", err)
	}
}

// holdPeriod is the time between two looks for the finalizer.
const holdPeriod = 20 * time.Millisecond

// Hold has virt-certificates put a finalizer on the ValidatingWebhookConfiguration,
// which stays in force with it also when it is deleted, or remove it. It returns when
// that is done, or the error that it was not. One that does not exist is not held.
func (s *Serving) Hold(ctx context.Context, held bool) error {
	if !s.holds(!held) && (held || !s.requested()) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.HoldWait)
	defer cancel()
	repeated, err := s.request(ctx, held)
	if err != nil {
		return fmt.Errorf("write the request to Secret %s/%s: %w", s.cfg.Namespace, s.cfg.Secret, err)
	}
	next := time.NewTicker(holdPeriod)
	defer next.Stop()
	for s.holds(!held) {
		// A request that was not fulfilled before is not waited for again.
		if ctx.Err() != nil || repeated {
			return fmt.Errorf("virt-certificates has not changed the finalizer %s of ValidatingWebhookConfiguration %s", certificate.HoldFinalizer, s.cfg.Webhooks)
		}
		select {
		case <-next.C:
		case <-ctx.Done():
		}
	}
	return nil
}

// holds says that the cached configuration exists and is held, or not, as asked.
func (s *Serving) holds(held bool) bool {
	c := s.configuration()
	return c != nil && slices.Contains(c.Finalizers, certificate.HoldFinalizer) == held
}

// requested says that the cached Secret has the request.
func (s *Serving) requested() bool {
	o, ok, err := s.secrets.GetStore().GetByKey(s.cfg.Namespace + "/" + s.cfg.Secret)
	if err != nil || !ok {
		return false
	}
	_, ok = o.(*corev1.Secret).Data[certificate.HoldKey]
	return ok
}

// requestAgain is how old a request must be to be repeated.
const requestAgain = 10 * time.Second

// request writes into the Secret whether the webhooks are to be held. repeated says that
// it was there already, and that it is not long ago.
func (s *Serving) request(ctx context.Context, held bool) (repeated bool, err error) {
	secrets := s.cfg.Kube.CoreV1().Secrets(s.cfg.Namespace)
	for {
		o, ok, err := s.secrets.GetStore().GetByKey(s.cfg.Namespace + "/" + s.cfg.Secret)
		if err != nil || !ok {
			return false, errors.Join(err, errors.New("it does not exist"))
		}
		secret := o.(*corev1.Secret).DeepCopy()
		before, had := secret.Data[certificate.HoldKey]
		if !held && !had {
			return false, nil
		}
		if held {
			if since, err := time.Parse(time.RFC3339, string(before)); err == nil && time.Since(since) < requestAgain {
				return true, nil
			}
			if secret.Data == nil {
				secret.Data = map[string][]byte{}
			}
			secret.Data[certificate.HoldKey] = []byte(time.Now().UTC().Format(time.RFC3339))
		} else {
			delete(secret.Data, certificate.HoldKey)
		}
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			return false, err
		}
		select { // until the cache has what another wrote
		case <-time.After(holdPeriod):
		case <-ctx.Done():
			return false, errors.Join(ctx.Err(), err)
		}
	}
}
