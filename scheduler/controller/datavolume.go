package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/scheduler/vm"
	"github.com/podvisor/podvisor/vmi"
)

// discoverAgain is how long it is remembered whether the API server serves DataVolumes.
const discoverAgain = 10 * time.Second

// dataVolumes reads and creates the DataVolumes of VMs. Whether the API server serves
// them is asked when a VM needs to know; they are watched from then on, and no longer
// when they are not served any more.
type dataVolumes struct {
	client    dynamic.Interface // nil: they count as not served
	discovery discovery.DiscoveryInterface
	namespace string // empty: all
	// changed takes the key of a DataVolume. It is set before run.
	changed func(key string)
	now     func() time.Time
	// ask holds those back who ask at the same time.
	ask sync.Mutex

	mu      sync.Mutex
	ctx     context.Context // of run; nil before
	asked   time.Time
	watched cache.SharedIndexInformer // nil: they are not served
	stop    context.CancelFunc
	work    sync.WaitGroup
}

func newDataVolumes(c Config) *dataVolumes {
	return &dataVolumes{client: c.Dynamic, discovery: c.Kube.Discovery(), namespace: c.Namespace, now: c.Now}
}

// run lets watches begin until ctx ends, and waits for their end.
func (d *dataVolumes) run(ctx context.Context) {
	d.mu.Lock()
	d.ctx = ctx
	d.mu.Unlock()
	<-ctx.Done()
	d.mu.Lock()
	d.ctx = nil
	d.mu.Unlock()
	d.work.Wait()
}

// of are the DataVolumes of the VM's templates. What the cache does not have is read
// from the API server.
func (d *dataVolumes) of(ctx context.Context, v *vmi.VirtualMachine) (vm.DataVolumes, error) {
	names := vm.DataVolumeNames(v)
	if len(names) == 0 || d.client == nil {
		return nil, nil
	}
	watched, err := d.served(ctx)
	if watched == nil || err != nil {
		return nil, err
	}
	out := vm.DataVolumes{}
	for _, n := range names {
		if o, ok, err := watched.GetStore().GetByKey(v.Namespace + "/" + n); err == nil && ok {
			out[n] = o.(*unstructured.Unstructured)
			continue
		}
		if out[n], err = read(ctx, "DataVolume", n, func(ctx context.Context, n string, o metav1.GetOptions) (*unstructured.Unstructured, error) {
			return d.in(v.Namespace).Get(ctx, n, o)
		}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (d *dataVolumes) in(namespace string) dynamic.ResourceInterface {
	return d.client.Resource(vm.DataVolumeResource).Namespace(namespace)
}

// served is the cache of the DataVolumes, or nil if the API server does not serve them.
func (d *dataVolumes) served(ctx context.Context) (cache.SharedIndexInformer, error) {
	d.ask.Lock()
	defer d.ask.Unlock()
	d.mu.Lock()
	watched, fresh := d.watched, !d.asked.IsZero() && d.now().Sub(d.asked) < discoverAgain
	d.mu.Unlock()
	if fresh {
		return watched, nil
	}
	found, err := d.discovery.ServerResourcesForGroupVersion(vm.DataVolumeKind.GroupVersion().String())
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("ask whether DataVolumes are served: %w", err)
	}
	there := err == nil && slices.ContainsFunc(found.APIResources, func(r metav1.APIResource) bool { return r.Name == vm.DataVolumeResource.Resource })
	return d.watch(ctx, there)
}

// watch begins or ends the watch.
func (d *dataVolumes) watch(ctx context.Context, there bool) (cache.SharedIndexInformer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = d.now()
	switch {
	case !there && d.watched != nil:
		d.stop()
		d.watched = nil
	case there && d.watched == nil && d.ctx == nil:
		return nil, errors.Join(ctx.Err(), errors.New("DataVolumes are not watched yet"))
	case there && d.watched == nil:
		var running context.Context
		running, d.stop = context.WithCancel(d.ctx)
		i := dynamicinformer.NewFilteredDynamicInformer(d.client, vm.DataVolumeResource, d.namespace, 0, cache.Indexers{}, nil).Informer()
		if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: d.notify, UpdateFunc: func(_, now any) { d.notify(now) }, DeleteFunc: d.notify,
		}); err != nil {
			return nil, err
		}
		d.watched = i
		d.work.Go(func() { i.RunWithContext(running) })
	}
	return d.watched, nil
}

func (d *dataVolumes) notify(o any) {
	if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o); err == nil {
		d.changed(key)
	}
}

// create creates the DataVolume. One of that name that its owner controls is the one that was
// to be created; another is seen by the next decision.
func (d *dataVolumes) create(ctx context.Context, v *unstructured.Unstructured) error {
	if d.client == nil {
		return fmt.Errorf("create DataVolume %s/%s: the controller is configured without a client for DataVolumes", v.GetNamespace(), v.GetName())
	}
	_, err := d.in(v.GetNamespace()).Create(ctx, v, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		var there *unstructured.Unstructured
		if there, err = d.in(v.GetNamespace()).Get(ctx, v.GetName(), metav1.GetOptions{}); err == nil && !sameController(there, v) {
			err = errors.New("another one was created at the same time")
		}
	}
	switch {
	case err == nil:
		return nil
	case isRefusal(err):
		return &Refusal{vmi.Finding{Reason: failedCreateDataVolume, Message: err.Error()}, err}
	}
	return fmt.Errorf("create DataVolume %s/%s: %w", v.GetNamespace(), v.GetName(), err)
}

// sameController says that the same object controls both.
func sameController(a, b metav1.Object) bool {
	of, and := metav1.GetControllerOfNoCopy(a), metav1.GetControllerOfNoCopy(b)
	return of != nil && and != nil && of.UID == and.UID
}

// inUse are the names of the DataVolumes of the namespace that wait for their deletion or belong
// to something else than the pool, and of all that there are. What the API server does not serve
// is not there.
func (d *dataVolumes) inUse(ctx context.Context, namespace string, pool types.UID) (used, all map[string]bool, err error) {
	used, all = map[string]bool{}, map[string]bool{}
	if d.client == nil {
		return used, all, nil
	}
	watched, err := d.served(ctx)
	if watched == nil || err != nil {
		return used, all, err
	}
	if !watched.HasSynced() {
		return nil, nil, errors.New("DataVolumes are not known yet")
	}
	for _, o := range watched.GetStore().List() {
		if v := o.(*unstructured.Unstructured); v.GetNamespace() == namespace {
			all[v.GetName()] = true
			used[v.GetName()] = belongsElsewhere(v, pool)
		}
	}
	return used, all, nil
}

// belongsElsewhere says that the object waits for its deletion, or that something else than the
// pool controls it.
func belongsElsewhere(o metav1.Object, pool types.UID) bool {
	ref := metav1.GetControllerOfNoCopy(o)
	return o.GetDeletionTimestamp() != nil || ref != nil && ref.UID != pool
}

// failedCreateDataVolume is why a DataVolume cannot be created.
const failedCreateDataVolume = "FailedDataVolumeCreate"
