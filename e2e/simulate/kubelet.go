package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/podvisor/podvisor/vmi"
)

// Config says which nodes there are and how they behave.
type Config struct {
	// Kube is the client of all kubelets. Required. It needs no limit of its own.
	Kube kubernetes.Interface
	// Nodes are the names of the nodes. Required.
	Nodes []string
	// Dir is where the kubelets' folders of pods are made. Required.
	Dir string
	// Namespace limits the pods to those of one namespace. Empty: all.
	Namespace string
	// Home is the namespace of virt-handler, whose pod each node gets: virt-controller
	// looks for it. Empty: kubevirt.
	Home string
	// Scheduled says that a scheduler runs. Otherwise pods without a node are bound to the
	// nodes in turn.
	Scheduled bool
	// Collect deletes the pods of VMIs that are gone, as the garbage collector does. It
	// reads the metadata of VMIs, and deletes by this client. Nil: a garbage collector runs.
	Collect metadata.Interface
	// Starts is how long the containers of a pod take to start. 0: no time, and the
	// kubelet's first write says that the pod runs.
	Starts time.Duration
	// Guest is how the guest of a launcher behaves. Nil: as the zero value of [Guest].
	Guest func(pod *corev1.Pod) Guest
	// Namespaces gives each launcher a network namespace with the link of a pod: what binds
	// the networks of a real virt-handler needs one.
	Namespaces bool
	// Workers is how many pods are handled at the same time. 0: 16.
	Workers int
	// Logger takes what fails. Nil: nothing is logged.
	Logger *slog.Logger
}

// Kubelets are the kubelets of all nodes, with one watch of pods.
type Kubelets struct {
	config   Config
	queue    workqueue.TypedRateLimitingInterface[string]
	store    cache.Store
	informer cache.Controller

	mu   sync.Mutex
	pods map[string]*pod // by key
	next int             // the node that the next pod is bound to

	registered bool // protected by mu
}

// pod is what a kubelet knows of a pod that it runs, beside the object. The worker that has the
// pod's key uses it alone, but for ended.
type pod struct {
	uid      types.UID
	bound    bool
	begun    time.Time
	launcher *Launcher
	written  report // what was written last
	stopping bool
	removed  bool // the object

	mu    sync.Mutex
	ended *Exit // of the container; protected by mu
}

// NewKubelets makes the kubelets, with their folders of pods. They do nothing until
// [Kubelets.Run].
func NewKubelets(c Config) (*Kubelets, error) {
	if c.Kube == nil || len(c.Nodes) == 0 || c.Dir == "" {
		return nil, errors.New("simulate: Config needs Kube, Nodes and Dir")
	}
	c.Home, c.Workers = cmp.Or(c.Home, "kubevirt"), cmp.Or(c.Workers, 16)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Guest == nil {
		c.Guest = func(*corev1.Pod) Guest { return Guest{} }
	}
	k := &Kubelets{config: c, pods: map[string]*pod{}}
	for _, n := range c.Nodes {
		if err := os.MkdirAll(k.Pods(n), 0o755); err != nil {
			return nil, err
		}
	}
	k.queue = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](20*time.Millisecond, 5*time.Second))
	add := func(o any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o); err == nil {
			k.queue.Add(key)
		}
	}
	k.store, k.informer = cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(c.Kube.CoreV1().RESTClient(), "pods", c.Namespace, fields.Everything()),
		ObjectType:    &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: add, DeleteFunc: add, UpdateFunc: func(_, o any) { add(o) },
		},
		Transform: trim,
	})
	return k, nil
}

// Pods is the kubelet's folder of pods of a node.
func (k *Kubelets) Pods(node string) string { return filepath.Join(k.config.Dir, node) }

// Register makes the Node objects, and the pod of virt-handler of each node. [Kubelets.Run] does
// so too: who needs them earlier calls it.
func (k *Kubelets) Register(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.registered {
		return nil
	}
	for _, n := range k.config.Nodes {
		if err := k.register(ctx, n); err != nil {
			return fmt.Errorf("register node %s: %w", n, err)
		}
	}
	k.registered = true
	return nil
}

// Run registers the nodes and runs their pods until ctx ends. All launchers have ended then, and
// the objects are left as they are.
func (k *Kubelets) Run(ctx context.Context) error {
	if err := k.Register(ctx); err != nil {
		return err
	}
	var wg sync.WaitGroup
	wg.Go(func() { k.informer.RunWithContext(ctx) })
	if k.config.Collect != nil {
		wg.Go(func() { k.collect(ctx) })
	}
	if !cache.WaitForCacheSync(ctx.Done(), k.informer.HasSynced) {
		k.queue.ShutDown()
		wg.Wait()
		return nil // ctx has ended
	}
	for range k.config.Workers {
		wg.Go(func() {
			for k.work(ctx) {
			}
		})
	}
	<-ctx.Done()
	k.queue.ShutDown()
	wg.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.pods {
		if p.launcher != nil {
			p.launcher.Kill()
		}
	}
	return nil
}

// Launchers are the launchers that run now, in no order.
func (k *Kubelets) Launchers() []*Launcher {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []*Launcher
	for _, p := range k.pods {
		if p.launcher != nil && p.exit() == nil {
			all = append(all, p.launcher)
		}
	}
	return all
}

func (k *Kubelets) work(ctx context.Context) bool {
	key, shutdown := k.queue.Get()
	if shutdown {
		return false
	}
	defer k.queue.Done(key)
	after, err := k.sync(ctx, key)
	switch {
	case err != nil && ctx.Err() == nil:
		k.config.Logger.Debug("pod", "pod", key, "err", err)
		k.queue.AddRateLimited(key)
	case after > 0:
		k.queue.AddAfter(key, after)
	default:
		k.queue.Forget(key)
	}
	return true
}

// sync does for a pod what is to be done now.
func (k *Kubelets) sync(ctx context.Context, key string) (time.Duration, error) {
	o, _, err := k.store.GetByKey(key)
	if err != nil {
		return 0, err
	}
	p, _ := o.(*corev1.Pod)
	r := k.record(key, p)
	switch {
	case p == nil:
		return 0, nil
	case p.Spec.NodeName == "":
		return 0, k.bind(ctx, p, r)
	case !slices.Contains(k.config.Nodes, p.Spec.NodeName):
		return 0, nil
	case p.DeletionTimestamp != nil:
		return 0, k.end(ctx, p, r)
	case over(p):
		return 0, nil
	}
	return k.run(ctx, p, r)
}

// record is what is known of the pod. A launcher of a pod that is not there any more is killed,
// as a kubelet does.
func (k *Kubelets) record(key string, p *corev1.Pod) *pod {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.pods[key]
	if r != nil && (p == nil || p.UID != r.uid) {
		if r.launcher != nil {
			go r.launcher.Kill()
		}
		delete(k.pods, key)
		r = nil
	}
	if r == nil && p != nil {
		r = &pod{uid: p.UID, begun: time.Now()}
		k.pods[key] = r
	}
	return r
}

// bind binds a pod to the next node.
func (k *Kubelets) bind(ctx context.Context, p *corev1.Pod, r *pod) error {
	if k.config.Scheduled || r.bound || p.DeletionTimestamp != nil {
		return nil
	}
	k.mu.Lock()
	node := k.config.Nodes[k.next%len(k.config.Nodes)]
	k.next++
	k.mu.Unlock()
	err := k.config.Kube.CoreV1().Pods(p.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, UID: p.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
	r.bound = err == nil
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // it is bound, or gone
	}
	return err
}

// run makes the pod run, and says how it is.
func (k *Kubelets) run(ctx context.Context, p *corev1.Pod, r *pod) (time.Duration, error) {
	if left := time.Until(r.begun.Add(k.config.Starts)); left > 0 {
		return left, k.write(ctx, p, r, report{Phase: corev1.PodPending})
	}
	if isLauncher(p) && r.launcher == nil {
		key := p.Namespace + "/" + p.Name
		l, err := k.launch(p, func(e Exit) {
			r.mu.Lock()
			r.ended = &e
			r.mu.Unlock()
			k.queue.Add(key)
		})
		if err != nil {
			return 0, err
		}
		k.mu.Lock()
		r.launcher = l
		k.mu.Unlock()
	}
	return 0, k.write(ctx, p, r, reportOf(p, r.exit()))
}

// end ends a pod that is being deleted: what runs in it first, then the object.
func (k *Kubelets) end(ctx context.Context, p *corev1.Pod, r *pod) error {
	exit := r.exit()
	if r.launcher != nil && exit == nil {
		if !r.stopping {
			r.stopping = true
			r.launcher.Terminate(time.Duration(*cmp.Or(p.DeletionGracePeriodSeconds, new(int64))) * time.Second)
		}
		return nil
	}
	if exit == nil {
		exit = &Exit{} // nothing but the simulation ran
	}
	if !over(p) {
		if err := k.write(ctx, p, r, reportOf(p, exit)); err != nil {
			return err
		}
	}
	if r.removed {
		return nil // the watch is behind
	}
	err := k.config.Kube.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(p.UID)),
	})
	r.removed = err == nil
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone, or another has its name
	}
	return err
}

func (p *pod) exit() *Exit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// over says that nothing in the pod runs any more.
func over(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func isLauncher(p *corev1.Pod) bool { return p.Labels[vmi.AppLabel] == vmi.LauncherApp }

// trim keeps of a pod what the kubelets read.
func trim(o any) (any, error) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	t := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion, OwnerReferences: p.OwnerReferences,
			DeletionTimestamp: p.DeletionTimestamp, DeletionGracePeriodSeconds: p.DeletionGracePeriodSeconds,
			Labels: map[string]string{vmi.AppLabel: p.Labels[vmi.AppLabel], vmi.CreatedByLabel: p.Labels[vmi.CreatedByLabel]},
		},
		Spec:   corev1.PodSpec{NodeName: p.Spec.NodeName, ReadinessGates: p.Spec.ReadinessGates},
		Status: corev1.PodStatus{Phase: p.Status.Phase, Conditions: p.Status.Conditions},
	}
	for _, c := range p.Spec.Containers {
		t.Spec.Containers = append(t.Spec.Containers, corev1.Container{Name: c.Name, Image: c.Image})
	}
	return t, nil
}

// launch starts the launcher of a pod.
func (k *Kubelets) launch(p *corev1.Pod, ended func(Exit)) (*Launcher, error) {
	owner := metav1.GetControllerOf(p)
	if owner == nil {
		return nil, fmt.Errorf("launcher pod %s/%s has no controller", p.Namespace, p.Name)
	}
	return StartLauncher(LauncherConfig{
		Pods: k.Pods(p.Spec.NodeName), Pod: p.UID, Node: p.Spec.NodeName,
		VMI:   VMI{Namespace: p.Namespace, Name: owner.Name, UID: owner.UID},
		Guest: k.config.Guest(p), Namespace: k.config.Namespaces, Ended: ended, Logger: k.config.Logger,
	})
}

// register makes the Node, and the pod of its virt-handler.
func (k *Kubelets) register(ctx context.Context, name string) error {
	nodes := k.config.Kube.CoreV1().Nodes()
	n, err := nodes.Create(ctx, node(name), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		n, err = nodes.Get(ctx, name, metav1.GetOptions{})
	}
	if err != nil {
		return err
	}
	n.Status = node(name).Status
	if _, err := nodes.UpdateStatus(ctx, n, metav1.UpdateOptions{}); err != nil {
		return err
	}
	pods := k.config.Kube.CoreV1().Pods(k.config.Home)
	p, err := pods.Create(ctx, handlerPod(name), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return err
	}
	p.Status = status(p, report{Phase: corev1.PodRunning, Ready: true}, metav1.Now(), metav1.Now())
	_, err = pods.UpdateStatus(ctx, p, metav1.UpdateOptions{})
	return err
}
