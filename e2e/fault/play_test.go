package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/e2e/simulate"
	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// nodes play the scheduler, the kubelet and virt-handler of node n1, and the garbage
// collector, for all namespaces, and keep the history of what was seen.
type nodes struct {
	loop    *reconcile.Loop
	mine    map[string]*client.Client // of the handlers of n1 and n2
	movers  *movers
	writers *writers
	pools   *pools
	wg      sync.WaitGroup

	mu    sync.Mutex
	vmis  map[string]*vmi.VirtualMachineInstance
	pods  map[string]*corev1.Pod
	vms   map[string]*vmi.VirtualMachine
	sets  map[string]map[types.UID]bool // the VMs, replica sets and pools of a namespace
	lives map[string]map[types.UID]*life
	seen  map[string]int // how many events of a namespace
	err   error          // the history has a gap
	// kubelets are those of the namespaces whose VMIs a virt-handler handles.
	kubelets map[string]*kubelet
}

// life is the history of one VMI.
type life struct {
	uid    types.UID
	name   string
	owner  string // "" or kind/name
	phases []vmi.Phase
	pods   []types.UID
	gone   bool
}

func makeNode(ctx context.Context, name string) error {
	n, err := world.kube.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		return ignoreExists(err)
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	_, err = world.kube.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{})
	return err
}

// play begins and returns when everything is watched. It ends with the context.
func play(ctx context.Context) (*nodes, error) {
	n := &nodes{
		vmis: map[string]*vmi.VirtualMachineInstance{}, pods: map[string]*corev1.Pod{}, sets: map[string]map[types.UID]bool{}, lives: map[string]map[types.UID]*life{},
		kubelets: map[string]*kubelet{}, seen: map[string]int{}, writers: newWriters(), pools: newPools(), vms: map[string]*vmi.VirtualMachine{},
		mine: map[string]*client.Client{},
	}
	var err error
	for _, node := range playedNodes {
		as := rest.CopyConfig(world.config)
		as.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + home + ":virt-handler",
			Extra: map[string][]string{"authentication.kubernetes.io/node-name": {node}}}
		if n.mine[node], err = client.New(as); err != nil {
			return nil, err
		}
	}
	n.loop = reconcile.New(reconcile.Config{Name: "nodes", Do: n.step, Workers: 8})
	if n.movers, err = serveMovers(ctx, n); err != nil {
		return nil, err
	}
	pods := world.kube.CoreV1().Pods("")
	launchers := vmi.AppLabel + "=" + vmi.LauncherApp
	err = errors.Join(
		n.watch(ctx, func(rv string) (watch.Interface, error) {
			return world.vmis.VirtualMachineInstances("").Watch(ctx, metav1.ListOptions{ResourceVersion: rv})
		}, n.instance),
		n.watch(ctx, func(rv string) (watch.Interface, error) {
			return pods.Watch(ctx, metav1.ListOptions{ResourceVersion: rv, LabelSelector: launchers})
		}, n.pod),
		n.watch(ctx, func(rv string) (watch.Interface, error) {
			return world.vmis.VirtualMachines("").Watch(ctx, metav1.ListOptions{ResourceVersion: rv})
		}, n.noteVM),
		n.watch(ctx, func(rv string) (watch.Interface, error) {
			return client.Of(world.vmis, vmpool.VirtualMachinePools, "").Watch(ctx, metav1.ListOptions{ResourceVersion: rv})
		}, n.owner),
		n.watch(ctx, func(rv string) (watch.Interface, error) {
			return world.vmis.VirtualMachineInstanceReplicaSets("").Watch(ctx, metav1.ListOptions{ResourceVersion: rv})
		}, n.owner))
	n.wg.Go(func() { n.loop.Run(ctx) })
	return n, err
}

func (n *nodes) wait() { n.wg.Wait() }

// watch calls f for every event, in its order.
func (n *nodes) watch(ctx context.Context, open func(rv string) (watch.Interface, error), f func(watch.EventType, metav1.Object)) error {
	w, err := open("")
	if err != nil {
		return err
	}
	n.wg.Go(func() {
		last := ""
		for ctx.Err() == nil {
			for e := range w.ResultChan() {
				o, ok := e.Object.(metav1.Object)
				if !ok || e.Type == watch.Error {
					n.fail(fmt.Errorf("the watch of the test is broken: %w", apierrors.FromObject(e.Object)))
					return
				}
				last = o.GetResourceVersion()
				if e.Type != watch.Bookmark {
					f(e.Type, o)
					n.note(o.GetNamespace())
				}
			}
			for w, err = open(last); err != nil; w, err = open(last) { // a busy API server closes watches
				if apierrors.IsGone(err) || apierrors.IsResourceExpired(err) {
					n.fail(fmt.Errorf("the watch of the test is broken: %w", err))
					return
				}
				select {
				case <-ctx.Done():
					return
				case <-time.After(100 * time.Millisecond):
				}
			}
		}
	})
	return nil
}

// note counts an event of a namespace, and events returns how many there were.
func (n *nodes) note(namespace string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen[namespace]++
}

func (n *nodes) events(namespace string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.seen[namespace]
}

func (n *nodes) fail(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.err = errors.Join(n.err, err)
}

func key(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }

func (n *nodes) instance(t watch.EventType, o metav1.Object) {
	v := o.(*vmi.VirtualMachineInstance)
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.life(v.Namespace, v.UID)
	l.name = v.Name
	if ref := metav1.GetControllerOfNoCopy(v); ref != nil {
		l.owner = ref.Kind + "/" + ref.Name
	}
	if p := v.Status.Phase; len(l.phases) == 0 || l.phases[len(l.phases)-1] != p {
		l.phases = append(l.phases, p)
	}
	n.vmis[key(v)] = v
	n.pools.instance(t, v)
	if t == watch.Deleted {
		l.gone = true
		delete(n.vmis, key(v))
		for k, p := range n.pods {
			if p.Labels[vmi.CreatedByLabel] == string(v.UID) {
				n.loop.Add("pod/" + k)
			}
		}
		return
	}
	n.loop.Add("vmi/" + key(v))
}

// life is the history of a VMI. The caller has locked n.
func (n *nodes) life(namespace string, uid types.UID) *life {
	all := n.lives[namespace]
	if all == nil {
		all = map[types.UID]*life{}
		n.lives[namespace] = all
	}
	if all[uid] == nil {
		all[uid] = &life{uid: uid}
	}
	return all[uid]
}

func (n *nodes) pod(t watch.EventType, o metav1.Object) {
	p := o.(*corev1.Pod)
	n.mu.Lock()
	defer n.mu.Unlock()
	if l := n.life(p.Namespace, types.UID(p.Labels[vmi.CreatedByLabel])); !slices.Contains(l.pods, p.UID) {
		l.pods = append(l.pods, p.UID)
	}
	n.pods[key(p)] = p
	if t == watch.Deleted {
		delete(n.pods, key(p))
		return
	}
	n.loop.Add("pod/" + key(p))
}

// noteVM notes a VM, which may have a pool.
func (n *nodes) noteVM(t watch.EventType, o metav1.Object) {
	v := o.(*vmi.VirtualMachine)
	n.pools.vm(t, v)
	n.mu.Lock()
	n.vms[key(v)] = v
	if t == watch.Deleted {
		delete(n.vms, key(v))
	}
	n.mu.Unlock()
	n.owner(t, o)
	n.loop.Add("vm/" + key(v))
}

// owner notes what VMs, replica sets and pools there are.
func (n *nodes) owner(t watch.EventType, o metav1.Object) {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.sets[o.GetNamespace()]
	if all == nil {
		all = map[types.UID]bool{}
		n.sets[o.GetNamespace()] = all
	}
	all[o.GetUID()] = t != watch.Deleted
	if t != watch.Deleted {
		return
	}
	n.loop.Add("revisions/" + key(o))
	for k, v := range n.vmis {
		if ref := metav1.GetControllerOfNoCopy(v); ref != nil && ref.UID == o.GetUID() {
			n.loop.Add("vmi/" + k)
		}
	}
	for k, v := range n.vms {
		if ref := metav1.GetControllerOfNoCopy(v); ref != nil && ref.UID == o.GetUID() {
			n.loop.Add("vm/" + k)
		}
	}
}

// step does the next thing that the node or the cluster would do with one object.
func (n *nodes) step(ctx context.Context, what string) (time.Duration, error) {
	kind, k, _ := strings.Cut(what, "/")
	n.mu.Lock()
	v, p, m := n.vmis[k], n.pods[k], n.vms[k]
	n.mu.Unlock()
	var err error
	switch {
	case kind == "vmi" && v != nil:
		err = n.stepInstance(ctx, v)
	case kind == "pod" && p != nil:
		err = n.stepPod(ctx, p)
	case kind == "vm" && m != nil && m.DeletionTimestamp == nil && n.orphan(m):
		err = world.vmis.VirtualMachines(m.Namespace).Delete(ctx, m.Name, exactly(m.UID))
	case kind == "revisions":
		err = n.collectRevisions(ctx, k)
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		err = nil // an event follows, or has come
	}
	return 0, err
}

// orphan reports whether the controller of the object is gone for certain.
func (n *nodes) orphan(o metav1.Object) bool {
	ref := metav1.GetControllerOfNoCopy(o)
	if ref == nil {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if ref.Kind == vmi.VirtualMachineInstances.Kind {
		return n.life(o.GetNamespace(), ref.UID).gone
	}
	there, known := n.sets[o.GetNamespace()][ref.UID]
	return known && !there
}

func exactly(uid types.UID) metav1.DeleteOptions {
	return metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(uid))}
}

func (n *nodes) stepInstance(ctx context.Context, v *vmi.VirtualMachineInstance) error {
	phase := v.Status.Phase
	switch {
	case v.DeletionTimestamp == nil && n.orphan(v):
		return world.vmis.VirtualMachineInstances(v.Namespace).Delete(ctx, v.Name, exactly(v.UID))
	case n.kubelet(v.Namespace) != nil:
		return nil
	case phase == vmi.PhaseScheduled && v.DeletionTimestamp == nil:
		return simulate.Report(ctx, n.mine[v.Status.NodeName].VirtualMachineInstances(v.Namespace), v, vmi.PhaseRunning)
	case (phase == vmi.PhaseScheduled || phase == vmi.PhaseRunning) && v.DeletionTimestamp != nil:
		return simulate.Report(ctx, n.mine[v.Status.NodeName].VirtualMachineInstances(v.Namespace), v, vmi.PhaseSucceeded)
	case phase == vmi.PhaseSucceeded:
		return n.complete(ctx, v)
	case n.movers.isStarted(v.Status.MigrationState):
		return n.move(ctx, v)
	case moved(v):
		return n.leave(ctx, v)
	}
	return nil
}

// complete ends the containers of a VMI's pods: its launcher has reported the end.
func (n *nodes) complete(ctx context.Context, v *vmi.VirtualMachineInstance) error {
	n.mu.Lock()
	var all []*corev1.Pod
	for _, p := range n.pods {
		if p.Labels[vmi.CreatedByLabel] == string(v.UID) && p.Status.Phase == corev1.PodRunning {
			all = append(all, p.DeepCopy())
		}
	}
	n.mu.Unlock()
	var errs []error
	for _, p := range all {
		n.writers.end(p)
		ended(p, protocol.End{Reason: protocol.Shutdown, Message: "the guest powered off"})
		_, err := world.kube.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, p, metav1.UpdateOptions{})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// ended makes the pod one whose launcher has ended so.
func ended(p *corev1.Pod, e protocol.End) {
	p.Status.Phase = corev1.PodSucceeded
	p.Status.Conditions = nil
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: vmi.ComputeContainer, Image: launcherImage, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", Message: e.Termination(), FinishedAt: metav1.Now()},
	}}}
}

const launcherImage = "podvisor/virt-launcher:v1"

// stepPod is what the scheduler and the kubelet do. A launcher that is asked to end powers
// its guest off, and its handler reports that first.
func (n *nodes) stepPod(ctx context.Context, p *corev1.Pod) error {
	if k := n.kubelet(p.Namespace); k != nil {
		return k.step(ctx, p, n.nodeFor(p), n.orphan(p))
	}
	pods := world.kube.CoreV1().Pods(p.Namespace)
	switch {
	case p.DeletionTimestamp != nil, n.orphan(p):
		if v := n.of(p); v != nil && p.DeletionTimestamp != nil && v.Status.ActivePods[p.UID] == v.Status.NodeName && (v.Status.Phase == vmi.PhaseScheduled || v.Status.Phase == vmi.PhaseRunning) {
			if err := simulate.Report(ctx, n.mine[v.Status.NodeName].VirtualMachineInstances(v.Namespace), v, vmi.PhaseSucceeded); err != nil {
				return err
			}
		}
		n.writers.end(p)
		return pods.Delete(ctx, p.Name, exactly(p.UID))
	case p.Spec.NodeName == "":
		return pods.Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: n.nodeFor(p)}}, metav1.CreateOptions{})
	case p.Status.Phase == corev1.PodPending:
		n.writers.begin(p)
		changed := p.DeepCopy()
		changed.Status.Phase = corev1.PodRunning
		changed.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		changed.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: vmi.ComputeContainer, Image: launcherImage, State: corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()},
		}}}
		_, err := pods.UpdateStatus(ctx, changed, metav1.UpdateOptions{})
		return err
	}
	return nil
}

// nodeFor is the node for a pod: the first one, or for the target of a migration the one where its
// VMI is not.
func (n *nodes) nodeFor(p *corev1.Pod) string {
	two := playedNodes
	if k := n.kubelet(p.Namespace); k != nil {
		two = k.nodes
	}
	if v := n.of(p); v != nil && p.Labels[vmi.MigrationJobLabel] != "" && v.Status.NodeName == two[0] {
		return two[1]
	}
	return two[0]
}

// of is the VMI of a pod.
func (n *nodes) of(p *corev1.Pod) *vmi.VirtualMachineInstance {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, v := range n.vmis {
		if string(v.UID) == p.Labels[vmi.CreatedByLabel] {
			return v
		}
	}
	return nil
}

// collectRevisions deletes the revisions of what is gone.
func (n *nodes) collectRevisions(ctx context.Context, k string) error {
	namespace, _, _ := strings.Cut(k, "/")
	all := world.kube.AppsV1().ControllerRevisions(namespace)
	l, err := all.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var errs []error
	for i := range l.Items {
		if n.orphan(&l.Items[i]) {
			errs = append(errs, all.Delete(ctx, l.Items[i].Name, exactly(l.Items[i].UID)))
		}
	}
	return errors.Join(errs...)
}

// history is the lives of the VMIs of a namespace.
func (n *nodes) history(namespace string) ([]life, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []life
	for _, l := range n.lives[namespace] {
		out = append(out, life{l.uid, l.name, l.owner, slices.Clone(l.phases), slices.Clone(l.pods), l.gone})
	}
	slices.SortFunc(out, func(a, b life) int { return strings.Compare(a.name+a.owner, b.name+b.owner) })
	return out, n.err
}

// ignoreExists is the error, unless it says that there is such an object: of the run before.
func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
