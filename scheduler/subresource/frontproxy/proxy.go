package frontproxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// The ConfigMap in which the API server publishes how it authenticates itself.
const (
	configNamespace = metav1.NamespaceSystem
	configName      = "extension-apiserver-authentication"
)

// Proxy authenticates requests of the API server's aggregator. It is made by [New] and
// run once; its methods may be called at the same time.
type Proxy struct {
	configs cache.SharedIndexInformer
	trust   atomic.Pointer[trusted]
	log     *slog.Logger
}

// New makes a Proxy that watches the ConfigMap by the client. The logger may be nil.
func New(kube kubernetes.Interface, logger *slog.Logger) (*Proxy, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	p := &Proxy{log: logger}
	p.configs = coreinformers.NewFilteredConfigMapInformer(kube, configNamespace, 0, cache.Indexers{}, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, configName).String()
	})
	_, err := p.configs.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: p.read, UpdateFunc: func(_, o any) { p.read(o) },
		DeleteFunc: func(any) { p.trust.Store(nil) },
	})
	return p, err
}

// read takes the trust from the ConfigMap. One that cannot be read is trusted in
// nothing.
func (p *Proxy) read(o any) {
	c, ok := o.(*corev1.ConfigMap)
	if !ok || c.Name != configName {
		return
	}
	t, err := parseTrust(c.Data)
	if err != nil {
		p.log.Error("requests of the aggregator are refused", "configMap", configNamespace+"/"+configName, "error", err)
	}
	p.trust.Store(t)
}

// Run watches until ctx ends.
func (p *Proxy) Run(ctx context.Context) error {
	p.configs.RunWithContext(ctx)
	return nil
}

// Ready says why requests cannot be authenticated, if they cannot.
func (p *Proxy) Ready() error {
	if p.trust.Load() == nil {
		return errors.New("ConfigMap " + configNamespace + "/" + configName + " is not read, or does not say whom to trust")
	}
	return nil
}

// Authenticate returns the caller of the request. The error wraps [ErrUnauthenticated]
// if it is not known: no header is read unless the connection is the aggregator's.
func (p *Proxy) Authenticate(r *http.Request) (User, error) {
	t := p.trust.Load()
	if t == nil {
		return User{}, fmt.Errorf("%w: %w", ErrUnauthenticated, p.Ready())
	}
	if err := t.Verify(r.TLS); err != nil {
		return User{}, err
	}
	return t.User(r.Header)
}
