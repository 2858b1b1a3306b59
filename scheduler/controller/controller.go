package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/informer"
	"github.com/podvisor/podvisor/vmi/config/live"
)

// Machines are the clients of virtual machine instances, and of the objects that
// configure the cluster. *client.Client is one.
type Machines interface {
	VirtualMachineInstances(namespace string) client.Instances
	KubeVirts(namespace string) client.KubeVirts
}

// Config is the configuration of a Controller.
type Config struct {
	// Client reads and writes the machines. Required.
	Client Machines
	// Kube reads and writes everything else. Required.
	Kube kubernetes.Interface
	// Pods is how launcher pods are rendered. Its Image is required, and its
	// Cluster is what Settings say, if there are any.
	Pods pod.Config
	// Settings is the cluster's configuration, which somebody runs. Its status is
	// written by the Controller, and the Controller does nothing while KubeVirt
	// itself is installed. Nil: the configuration is Pods.Cluster for ever.
	Settings *live.Watcher
	// Home is the namespace that virt-handler is installed in, whose progress is
	// a part of that status. Empty: kubevirt.
	Home string
	// Namespace limits the controller to one namespace. Empty: all.
	Namespace string
	// Workers is how many machines are handled at the same time. 0: 8.
	Workers int
	// Logger takes a line for each thing done. Nil: nothing is logged.
	Logger *slog.Logger
	// Now is the clock. Nil: time.Now.
	Now func() time.Time
}

// Controller makes pods for machines. It is made by New and run once.
type Controller struct {
	cfg      Config
	log      *slog.Logger
	machines informer.Informer[*vmi.VirtualMachineInstance]
	pods     cache.SharedIndexInformer
	loop     *reconcile.Loop
	events   record.EventRecorder
	sink     record.EventBroadcaster
	own      ownWrites
	report   *reporter // nil: there are no Settings
}

// New makes a Controller. It touches nothing until it runs.
func New(c Config) (*Controller, error) {
	if c.Client == nil || c.Kube == nil || c.Pods.Image == "" {
		return nil, errors.New("configure the controller: client, kube and the launcher image are required")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Workers == 0 {
		c.Workers = 8
	}
	scheme := runtime.NewScheme()
	if err := vmi.AddToScheme(scheme); err != nil {
		return nil, err
	}
	k := &Controller{cfg: c, log: c.Logger, machines: informer.New(c.Client.VirtualMachineInstances(c.Namespace), informer.Selection{})}
	k.pods = coreinformers.NewFilteredPodInformer(c.Kube, c.Namespace, 0, cache.Indexers{},
		func(o *metav1.ListOptions) { o.LabelSelector = vmi.AppLabel + "=" + vmi.LauncherApp })
	k.loop = reconcile.New(reconcile.Config{Name: "instance", Do: k.reconcile, Workers: c.Workers, Logger: c.Logger})
	k.sink = record.NewBroadcaster()
	k.events = k.sink.NewRecorder(scheme, corev1.EventSource{Component: "virtualmachine-controller"})
	if c.Settings != nil {
		k.report = newReporter(c, k.events)
		c.Settings.OnChange(k.reconfigured)
	}
	return k, k.watch()
}

// reconfigured looks at every machine again: what could not be done may be
// possible now.
func (k *Controller) reconfigured() {
	for _, v := range k.machines.GetIndexer().ListKeys() {
		k.loop.Add(v)
	}
}

// watch lets every change of a machine or its pod queue the machine.
func (k *Controller) watch() error {
	queue := func(key func(any) (string, bool)) cache.ResourceEventHandlerFuncs {
		add := func(o any) {
			if s, ok := key(o); ok {
				k.loop.Add(s)
			}
		}
		return cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, o any) { add(o) }, DeleteFunc: add}
	}
	_, err := k.machines.AddEventHandler(queue(func(o any) (string, bool) {
		s, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o)
		return s, err == nil
	}))
	_, err2 := k.pods.AddEventHandler(queue(machineOf))
	return errors.Join(err, err2, k.machines.SetTransform(trim), k.pods.SetTransform(trim))
}

// machineOf is the key of the machine that a pod belongs to.
func machineOf(o any) (string, bool) {
	if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = d.Obj
	}
	m, err := meta.Accessor(o)
	if err != nil {
		return "", false
	}
	ref := metav1.GetControllerOfNoCopy(m)
	if ref == nil || ref.Kind != vmi.Kind.Kind {
		return "", false
	}
	return cache.ObjectName{Namespace: m.GetNamespace(), Name: ref.Name}.String(), true
}

// trim drops what nobody here reads and what is much of an object's size.
func trim(o any) (any, error) {
	if m, err := meta.Accessor(o); err == nil {
		m.SetManagedFields(nil)
	}
	return o, nil
}

// Ready says why the Controller does not do its work, if it does not: the
// configuration is not known yet, or KubeVirt itself is installed. Starting it
// again would not help.
func (k *Controller) Ready() error {
	if k.cfg.Settings == nil {
		return nil
	}
	return k.cfg.Settings.Ready()
}

// Run works until ctx ends and everything that was begun is done.
func (k *Controller) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	k.sink.StartRecordingToSink(eventSink{ctx, k.cfg.Kube})
	defer k.sink.Shutdown()
	wg.Go(func() { k.machines.RunWithContext(ctx) })
	wg.Go(func() { k.pods.RunWithContext(ctx) })
	if k.report != nil {
		wg.Go(func() { k.report.run(ctx) })
		if !k.cfg.Settings.Wait(ctx) {
			return nil
		}
	}
	if !cache.WaitForCacheSync(ctx.Done(), k.machines.HasSynced, k.pods.HasSynced) {
		return nil
	}
	k.log.Info("watching", "machines", len(k.machines.List()))
	k.loop.Run(ctx)
	return nil
}

// reconcile observes, decides and acts. A pod that is refused is observed as
// such, so that the reason is written before the next try.
func (k *Controller) reconcile(ctx context.Context, key string) (time.Duration, error) {
	if k.cfg.Settings != nil && k.cfg.Settings.Foreign() != "" {
		return 0, nil
	}
	o, err := k.observe(ctx, key)
	if o == nil || err != nil {
		return 0, err
	}
	plan := instance.Decide(*o)
	err = k.act(ctx, o, plan)
	var refused *refusal
	if errors.As(err, &refused) {
		o.Refusal = &refused.Finding
		return 0, errors.Join(err, k.act(ctx, o, instance.Decide(*o)))
	}
	return plan.Recheck, err
}

// rendering is how pods are rendered now.
func (k *Controller) rendering() pod.Config {
	c := k.cfg.Pods
	if k.cfg.Settings != nil {
		c.Cluster = k.cfg.Settings.Config()
	}
	return c
}

// Cached returns the launcher pod of this name and the machine that it names as
// its controller, as they were a moment ago. Nil: there is none, or the Controller
// does not know of it, as while it does not run. They are shared: copy them before
// changing them.
func (k *Controller) Cached(namespace, name string) (*corev1.Pod, *vmi.VirtualMachineInstance) {
	p, err := corelisters.NewPodLister(k.pods.GetIndexer()).Pods(namespace).Get(name)
	if err != nil {
		return nil, nil
	}
	key, ok := machineOf(p)
	if !ok {
		return p, nil
	}
	return p, k.own.latest(key, k.machines.Key(key))
}

// observe reads the machine and its pod. It returns nil if there is no machine.
func (k *Controller) observe(ctx context.Context, key string) (*instance.Observed, error) {
	v := k.own.latest(key, k.machines.Key(key))
	if v == nil {
		return nil, nil
	}
	o := &instance.Observed{VMI: v, Config: k.rendering(), Now: k.cfg.Now()}
	p, err := corelisters.NewPodLister(k.pods.GetIndexer()).Pods(v.Namespace).Get(pod.Name(v))
	if err == nil && !otherPod(v, p) {
		o.Pod = p
		return o, nil
	}
	// The cache of pods may be behind, and hold no pod or the one before. That is
	// harmless where the answer to a missing pod is to make it, because a pod
	// cannot be made twice. Everywhere else the API server has the word.
	fresh := v.DeletionTimestamp == nil && (v.Status.Phase == vmi.PhaseUnset || v.Status.Phase == vmi.Pending)
	if fresh || v.Status.Phase.Final() {
		return o, nil
	}
	o.Pod, err = k.pod(ctx, types.NamespacedName{Namespace: v.Namespace, Name: pod.Name(v)})
	if err != nil {
		return nil, fmt.Errorf("read the pod of %s: %w", key, err)
	}
	return o, nil
}

// otherPod says that the machine was handed over with another pod than p.
func otherPod(v *vmi.VirtualMachineInstance, p *corev1.Pod) bool {
	_, same := v.Status.ActivePods[p.UID]
	return len(v.Status.ActivePods) > 0 && !same && !v.Status.Phase.Final()
}
