package controller

import (
	"cmp"
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/scheduler/vm"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/informer"
	"github.com/podvisor/podvisor/vmi/instancetype"
	"github.com/podvisor/podvisor/vmi/migrationpolicy"
)

// caches are the informers that the loops of all kinds share, each with what is
// read of its objects. A kind that is reconciled has its own, which [register] adds.
type caches struct {
	reconcile.Caches
	// instances are those of the loop of VMIs, which most loops read.
	instances informer.Informer[*vmi.VirtualMachineInstance]
	revisions informer.Informer[*appsv1.ControllerRevision]
	pods      informer.Informer[*corev1.Pod]
	claims    informer.Informer[*corev1.PersistentVolumeClaim]
	nodes     informer.Informer[*corev1.Node]
	policies  informer.Informer[*migrationpolicy.MigrationPolicy]
	sizes     []sizes
	// handlers are the pods of virt-handler. Not used if there is no Config.Home.
	handlers informer.Informer[*corev1.Pod]
}

// handlerApp is the name of the DaemonSet of virt-handler, and its label.
const handlerApp = "virt-handler"

func newCaches(c Config, keep *keeper) (*caches, error) {
	labelled := func(app string) func(*metav1.ListOptions) {
		return func(o *metav1.ListOptions) { o.LabelSelector = vmi.AppLabel + "=" + app }
	}
	s := &caches{
		revisions: informer.Wrap[*appsv1.ControllerRevision](appsinformers.NewFilteredControllerRevisionInformer(c.Kube, c.Namespace, 0, namespaced(), labelled(vm.RevisionApp))),
		pods:      informer.Wrap[*corev1.Pod](coreinformers.NewFilteredPodInformer(c.Kube, c.Namespace, 0, namespaced(), labelled(vmi.LauncherApp))),
		claims:    informer.Wrap[*corev1.PersistentVolumeClaim](coreinformers.NewPersistentVolumeClaimInformer(c.Kube, c.Namespace, 0, namespaced())),
		nodes:     informer.Wrap[*corev1.Node](coreinformers.NewNodeInformer(c.Kube, 0, cache.Indexers{})),
		handlers:  informer.Wrap[*corev1.Pod](coreinformers.NewFilteredPodInformer(c.Kube, c.Home, 0, namespaced(), labelled(handlerApp))),
	}
	var err error
	if s.policies, err = informer.NewFiltered(client.Of(c.Client, migrationpolicy.MigrationPolicies, ""), informer.Selection{}); err != nil {
		return nil, err
	}
	err = errors.Join(
		cacheSizes(c, s, instancetype.VirtualMachineInstancetypes), cacheSizes(c, s, instancetype.VirtualMachineClusterInstancetypes),
		cacheSizes(c, s, instancetype.VirtualMachinePreferences), cacheSizes(c, s, instancetype.VirtualMachineClusterPreferences),
		reconcile.Cache(&s.Caches, s.policies, reconcile.Cached[*migrationpolicy.MigrationPolicy]{}),
		reconcile.Cache(&s.Caches, s.revisions, reconcile.Cached[*appsv1.ControllerRevision]{Keep: keepRevision, Indexers: revisionIndexers()}),
		reconcile.Cache(&s.Caches, s.pods, reconcile.Cached[*corev1.Pod]{Keep: keep.pod, Indexers: podIndexers()}),
		reconcile.Cache(&s.Caches, s.claims, reconcile.Cached[*corev1.PersistentVolumeClaim]{Keep: keepClaim, Indexers: claimIndexers()}),
		reconcile.Cache(&s.Caches, s.nodes, reconcile.Cached[*corev1.Node]{Keep: keepNode}),
	)
	if c.Home != "" {
		err = errors.Join(err, reconcile.Cache(&s.Caches, s.handlers, reconcile.Cached[*corev1.Pod]{Keep: keep.pod, Indexers: cache.Indexers{IndexNode: index(onNode)}}))
	}
	return s, err
}

func namespaced() cache.Indexers {
	return cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
}

// ownerOf is the key of the VMI that controls the pod.
func ownerOf(p *corev1.Pod) []string {
	return reconcile.OwnedBy[*corev1.Pod](vmi.VirtualMachineInstances.Kind)(p)
}

// madeFor is the key of the VMI that the pod was made for.
func madeFor(p *corev1.Pod) []string {
	if name := launched.InstanceName(p); name != "" {
		return reconcile.KeysIn(p.Namespace, name)
	}
	return nil
}

// podChanged and nodeChanged report whether something changed of what is kept. Of a pod that
// changes it is most often the status, which is compared first for that: the comparison by
// reflection of the rest takes longer.
func podChanged(old, now *corev1.Pod) bool {
	if !equality.Semantic.DeepEqual(&old.Status, &now.Status) {
		return true
	}
	c := *old
	c.ResourceVersion, c.Generation = now.ResourceVersion, now.Generation
	return !equality.Semantic.DeepEqual(&c, now)
}

func nodeChanged(old, now *corev1.Node) bool {
	c := *old
	c.ResourceVersion, c.Generation = now.ResourceVersion, now.Generation
	return !equality.Semantic.DeepEqual(&c, now)
}

// instancesOn are the keys of the VMIs whose pod is on the node.
func (s *caches) instancesOn(node string) []string {
	if node == "" {
		return nil
	}
	keys, _ := s.instances.GetIndexer().IndexKeys(IndexNode, node) // the index exists
	pods, _ := s.pods.GetIndexer().ByIndex(IndexNode, node)
	for _, p := range pods {
		keys = append(keys, madeFor(p.(*corev1.Pod))...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// instancesWith are the keys of the VMIs with a volume in the claim, or with their state.
func (s *caches) instancesWith(c *corev1.PersistentVolumeClaim) []string {
	keys, _ := s.instances.GetIndexer().IndexKeys(IndexClaim, reconcile.Key(c))
	if name := c.Labels[vmi.StateLabel]; name != "" {
		keys = append(keys, reconcile.KeyIn(c.Namespace, name)) // names of VMIs are no longer than labels
	}
	return keys
}

// handlerOn is the pod of virt-handler on the node: of several one that is ready, of these
// one that is not being deleted, or else the one with the first name. Nil: there is none.
func (s *caches) handlerOn(node string) *corev1.Pod {
	all, _ := s.handlers.GetIndexer().ByIndex(IndexNode, node)
	var found *corev1.Pod
	for _, o := range all {
		p := o.(*corev1.Pod)
		if found == nil || before(p, found) {
			found = p
		}
	}
	return found
}

// before reports whether a rather than b is the pod of virt-handler on a node.
func before(a, b *corev1.Pod) bool {
	if x, y := isReady(a), isReady(b); x != y {
		return x
	}
	if x, y := a.DeletionTimestamp == nil, b.DeletionTimestamp == nil; x != y {
		return x
	}
	return cmp.Less(a.Name, b.Name)
}

// isReady reports whether the pod is ready. One that is being deleted may be: it does its work
// until the migrations of its node are over, and the kubelet asks it until it has ended.
func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
