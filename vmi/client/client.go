package client

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/podvisor/podvisor/vmi"
)

// Client reads and writes objects of any kind: those of package vmi by its
// methods, others by [Of]. It is safe for concurrent use.
type Client struct {
	cfg  *rest.Config
	http *http.Client
	// kinds are the kindClients by typedKind.
	kinds sync.Map
	// subresources sends requests to the API of the verbs.
	subresources rest.Interface
	// replace says whether a status may be written as a whole. It is shared with all kindClients.
	replace *atomic.Pointer[func() bool]
}

// New makes a Client that talks to the API server of cfg. The configuration is
// copied; its content type is set to JSON, the only one that custom resources
// have in every version of Kubernetes. All kinds share one limit of requests.
// Without a user agent it has client-go's, which names the program: the API server
// records it in its audit log, and its first word as the manager of written fields.
func New(cfg *rest.Config) (*Client, error) {
	if cfg == nil {
		return nil, errors.New("make a client: cfg is nil: it needs the address of an API server, as of rest.InClusterConfig")
	}
	cfg = rest.CopyConfig(cfg)
	cfg.ContentType = runtime.ContentTypeJSON
	cfg.AcceptContentTypes = runtime.ContentTypeJSON
	cfg.UserAgent = cmp.Or(cfg.UserAgent, rest.DefaultKubernetesUserAgent())
	if cfg.RateLimiter == nil && cfg.QPS >= 0 {
		cfg.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(cmp.Or(cfg.QPS, rest.DefaultQPS), cmp.Or(cfg.Burst, rest.DefaultBurst))
	}
	h, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", cfg.Host, err)
	}
	c := &Client{cfg: cfg, http: h, replace: &atomic.Pointer[func() bool]{}}
	// What is wrong with a configuration is wrong for every kind.
	if c.subresources, err = c.newSubresources(); err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", cfg.Host, err)
	}
	if _, err := c.newKindClient(vmi.VirtualMachineInstances.Definition); err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", cfg.Host, err)
	}
	return c, nil
}

// ReplaceStatuses has [ReplaceStatus] send a status as a whole while may returns true. May must
// return false if the objects of the cluster may have fields in their statuses that this
// version does not know: they would be lost (see live.Watcher.OwnStatuses). It is called for
// each write, from any goroutine.
func (c *Client) ReplaceStatuses(may func() bool) { c.replace.Store(&may) }

// Of reads and writes the objects of one kind in the namespace, or in all of them
// if it is empty. The kind may be of any API group; if its objects are in no
// namespace, the namespace is ignored. It sends nothing.
func Of[T vmi.Object, L runtime.Object](c *Client, d vmi.DefinitionOf[T, L], namespace string) Objects[T, L] {
	if d.ClusterScoped {
		namespace = ""
	}
	return Objects[T, L]{kindClient: c.kind(d.Definition), definition: d, namespace: namespace}
}

// VirtualMachineInstances reads and writes VMIs, and calls their verbs.
func (c *Client) VirtualMachineInstances(namespace string) VirtualMachineInstances {
	return VirtualMachineInstances{Of(c, vmi.VirtualMachineInstances, namespace), verbs{c, vmi.VirtualMachineInstances.Definition, namespace}}
}

// VirtualMachines reads and writes VirtualMachines, and calls their verbs.
func (c *Client) VirtualMachines(namespace string) VirtualMachines {
	return VirtualMachines{Of(c, vmi.VirtualMachines, namespace), verbs{c, vmi.VirtualMachines.Definition, namespace}}
}

// VirtualMachineInstanceReplicaSets reads and writes replica sets and their
// scales.
func (c *Client) VirtualMachineInstanceReplicaSets(namespace string) Objects[*vmi.VirtualMachineInstanceReplicaSet, *vmi.VirtualMachineInstanceReplicaSetList] {
	return Of(c, vmi.VirtualMachineInstanceReplicaSets, namespace)
}

// VirtualMachineInstanceMigrations reads and writes migrations.
func (c *Client) VirtualMachineInstanceMigrations(namespace string) Objects[*vmi.VirtualMachineInstanceMigration, *vmi.VirtualMachineInstanceMigrationList] {
	return Of(c, vmi.VirtualMachineInstanceMigrations, namespace)
}

// KubeVirts reads and writes the configuration of Podvisor.
func (c *Client) KubeVirts(namespace string) Objects[*vmi.KubeVirt, *vmi.KubeVirtList] {
	return Of(c, vmi.KubeVirts, namespace)
}

// kindClient sends requests for the objects of one kind.
type kindClient struct {
	rest    rest.Interface
	codec   runtime.ParameterCodec
	replace *atomic.Pointer[func() bool]
}

// typedKind is a kind as one Go type.
type typedKind struct {
	schema.GroupVersionKind
	object reflect.Type
}

// kind returns the client of the kind, which it makes at the first call.
func (c *Client) kind(d vmi.Definition) kindClient {
	k := typedKind{d.GroupVersionKind, reflect.TypeOf(d.New())}
	if made, ok := c.kinds.Load(k); ok {
		return made.(kindClient)
	}
	fresh, err := c.newKindClient(d)
	if err != nil {
		panic(fmt.Sprintf("make a client of %s by a configuration that New accepted: %v", d.GroupVersionKind, err))
	}
	made, _ := c.kinds.LoadOrStore(k, fresh)
	return made.(kindClient)
}

// newKindClient makes the client of a kind. It sends nothing.
func (c *Client) newKindClient(d vmi.Definition) (kindClient, error) {
	s := runtime.NewScheme()
	d.AddToScheme(s)
	cfg := rest.CopyConfig(c.cfg)
	cfg.APIPath = "/apis"
	if d.Group == "" {
		cfg.APIPath = "/api"
	}
	gv := d.GroupVersion()
	cfg.GroupVersion = &gv
	cfg.NegotiatedSerializer = newNegotiated(serializer.NewCodecFactory(s).WithoutConversion(), d)
	r, err := rest.RESTClientForConfigAndClient(cfg, c.http)
	return kindClient{rest: r, codec: runtime.NewParameterCodec(s), replace: c.replace}, err
}
