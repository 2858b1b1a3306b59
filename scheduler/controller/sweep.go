package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/internal/expiring"
	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// sweeper deletes launcher pods whose VMI does not exist.
type sweeper struct {
	*Controller
	loop *reconcile.Loop
	gone expiring.Map[types.UID, time.Time] // since when the cache has not had the VMIs of pods
}

// newSweeper makes the sweeper of the controller. Pods are queued when they change,
// and when their VMI goes.
func newSweeper(c *Controller) (*sweeper, error) {
	s := &sweeper{Controller: c}
	s.loop = reconcile.New(reconcile.Config{Name: "virt-controller-pod", Do: s.reconcile, Workers: 2, Metrics: c.queues, Logger: c.log})
	_, err := c.caches.instances.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(o any) {
		if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = d.Obj
		}
		if v, ok := o.(*vmi.VirtualMachineInstance); ok {
			keys, _ := c.caches.pods.GetIndexer().IndexKeys(indexCreator, string(v.UID)) // the index exists
			for _, key := range keys {
				s.loop.Add(key)
			}
		}
	}})
	return s, errors.Join(err, reconcile.Watch(c.caches.pods, s.loop, func(p *corev1.Pod) []string {
		for _, key := range madeFor(p) {
			c.made.seen(key, p.Name)
		}
		return reconcile.Itself(p)
	}, nil))
}

// queueAll queues every pod.
func (s *sweeper) queueAll() {
	for _, key := range s.caches.pods.GetIndexer().ListKeys() {
		s.loop.Add(key)
	}
}

func (s *sweeper) reconcile(ctx context.Context, key string) (time.Duration, error) {
	p := s.caches.pods.Lister().Key(key)
	if p == nil {
		return 0, nil
	}
	creator := launched.Creator(p)
	if creator == "" || p.DeletionTimestamp != nil || s.suspended() || s.known(creator) {
		return 0, nil
	}
	plan := sweepPod(p, s.since(creator), s.cfg.Now())
	if len(plan.Actions) == 0 {
		return plan.Recheck, nil
	}
	// An empty cache proves nothing. Most pods are gone by now with their VMI, which costs
	// no request.
	lacks, err := s.lacksInstance(ctx, p)
	if err != nil || !lacks {
		return 0, err
	}
	for _, a := range plan.Actions {
		if d, ok := a.(scheduler.DeletePod); ok {
			s.log.Info("delete the pod of a VMI that does not exist", "pod", key, "uid", creator)
			err = errors.Join(err, s.instances.deletePod(ctx, p.Namespace, d))
		}
	}
	return plan.Recheck, err
}

// known reports whether the cache has the VMI with this UID.
func (s *sweeper) known(uid types.UID) bool {
	keys, _ := s.caches.instances.GetIndexer().IndexKeys(IndexUID, string(uid)) // the index exists
	if len(keys) > 0 {
		s.gone.Delete(uid)
	}
	return len(keys) > 0
}

// since is since when the cache has not had the VMI with this UID, while it has had a pod of
// it. What is known of pods that are gone too is dropped.
func (s *sweeper) since(uid types.UID) time.Time {
	now := s.cfg.Now()
	for other := range s.gone.All(now) {
		if pods, _ := s.caches.pods.GetIndexer().IndexKeys(indexCreator, string(other)); len(pods) == 0 {
			s.gone.Delete(other)
		}
	}
	return s.gone.GetOrPut(uid, now, now, 0)
}

// lacksInstance asks the API server whether the VMI that the pod was made for does
// not exist. Of a pod that names no VMI nothing is known.
func (s *sweeper) lacksInstance(ctx context.Context, p *corev1.Pod) (bool, error) {
	names := []string{p.Annotations[vmi.DomainAnnotation], launched.InstanceName(p)}
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(n string) bool { return n == "" })
	for _, n := range names {
		v, err := s.cfg.Client.VirtualMachineInstances(p.Namespace).Get(ctx, n, metav1.GetOptions{})
		switch {
		case isMissing(err):
		case err != nil:
			return false, fmt.Errorf("read VMI %s/%s of pod %s: %w", p.Namespace, n, p.Name, err)
		case v.UID == launched.Creator(p):
			return false, nil
		}
	}
	return len(names) > 0, nil
}

// isMissing reports whether the API server says that the object does not exist,
// and not that it does not serve the kind, as while it starts or after the kind
// was removed.
func isMissing(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// made are the names of the pods that were created last, by the key of their VMI.
//
// It closes one race: a VMI whose finalizer is removed by hand can be deleted and
// created again before the cache has the pod of the first one, and the second one
// must wait for the end of that pod.
type made struct{ expiring.Map[string, string] }

// seen drops the pod, which the cache has or which is gone.
func (m *made) seen(key, pod string) { m.DeleteIf(key, func(p string) bool { return p == pod }) }

// sweepDelay is how long the pod of a VMI that does not exist is left to
// Kubernetes, which deletes pods whose owner is gone.
const sweepDelay = 15 * time.Second

// endedSweepDelay is the same for a pod that has ended. It has no guest, and Kubernetes takes
// longer where it has much to do.
const endedSweepDelay = 5 * time.Minute

// sweepPod is the plan for a launcher pod whose VMI does not exist: it is deleted, and
// its launcher powers the guest off. Nothing else ends the guest of a pod that was
// orphaned, when the finalizer of its VMI was removed by hand or etcd was restored.
// Gone is since when the VMI is believed not to exist.
func sweepPod(p *corev1.Pod, gone, now time.Time) scheduler.Plan {
	if p.DeletionTimestamp != nil {
		return scheduler.Plan{}
	}
	delay := sweepDelay
	if launched.Ended(p) {
		delay = endedSweepDelay
	}
	if left := gone.Add(delay).Sub(now); left > 0 && metav1.GetControllerOfNoCopy(p) != nil {
		return scheduler.Plan{Recheck: left}
	}
	return scheduler.Plan{Actions: []scheduler.Action{scheduler.DeletePod{Name: p.Name, UID: p.UID}}}
}
