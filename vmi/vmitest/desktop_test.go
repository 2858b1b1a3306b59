package vmitest_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/podvisor/podvisor/vmi"
	vm "github.com/podvisor/podvisor/vmi/applyconfiguration"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/client/informer"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// docs/operator.md shows what is between lines of begin and end.

// begin kind

// Desktop is a kind of this operator: a VM that is paused while it is idle.
type Desktop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              DesktopSpec `json:"spec"`
}

type DesktopSpec struct {
	Image  string            `json:"image"`
	Memory resource.Quantity `json:"memory"`
	Idle   bool              `json:"idle,omitempty"`
}

type DesktopList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Desktop `json:"items"`
}

// Desktops is what clients, informers and the fake API server know of the kind.
var Desktops = vmi.Define[Desktop, DesktopList](vmi.Definition{
	GroupVersionKind: schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Desktop"},
	Plural:           "desktops",
})

// end

func (d *Desktop) DeepCopyObject() runtime.Object {
	c := *d
	d.DeepCopyInto(&c.ObjectMeta)
	c.Spec.Memory = d.Spec.Memory.DeepCopy()
	return &c
}

func (l *DesktopList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = nil
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*Desktop))
	}
	return &c
}

// begin watch

type Operator struct {
	client   *client.Client
	factory  *informer.Factory
	desktops informer.Lister[*Desktop]
	vmis     informer.Lister[*vmi.VirtualMachineInstance]
	queue    workqueue.TypedRateLimitingInterface[string]
}

func NewOperator(cfg *rest.Config) (*Operator, error) {
	c, err := client.New(cfg)
	if err != nil {
		return nil, err
	}
	factory := informer.NewFactory(c, metav1.NamespaceAll)
	desktops, err := informer.For(factory, Desktops, informer.Selection{})
	if err != nil {
		return nil, err
	}
	vmis, err := informer.For(factory, vmi.VirtualMachineInstances, informer.Selection{Labels: "desktop"})
	if err != nil {
		return nil, err
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	// A VMI has the name of its VM, which has the name of its desktop.
	enqueue := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			queue.Add(key)
		}
	}
	changed := cache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, now any) { enqueue(now) }, DeleteFunc: enqueue}
	for _, i := range []cache.SharedIndexInformer{desktops, vmis} {
		if _, err := i.AddEventHandler(changed); err != nil {
			return nil, err
		}
	}
	return &Operator{c, factory, desktops.Lister(), vmis.Lister(), queue}, nil
}

// Run reconciles until ctx ends.
func (o *Operator) Run(ctx context.Context) {
	o.factory.Start(ctx)
	defer o.factory.Shutdown()
	if !o.factory.WaitForCacheSync(ctx) {
		return
	}
	context.AfterFunc(ctx, o.queue.ShutDown)
	for key, ended := o.queue.Get(); !ended; key, ended = o.queue.Get() {
		if err := o.Reconcile(ctx, key); err != nil {
			o.queue.AddRateLimited(key) // a real operator also logs it
		} else {
			o.queue.Forget(key)
		}
		o.queue.Done(key)
	}
}

// end

// begin reconcile

// Reconcile applies the VM of a desktop, and pauses its guest while the desktop is idle.
func (o *Operator) Reconcile(ctx context.Context, key string) error {
	d := o.desktops.Key(key)
	if d == nil || d.DeletionTimestamp != nil {
		return nil // the garbage collector deletes the VM, which deletes its VMI
	}
	owner := apply.OwnerReference().WithAPIVersion("example.org/v1").WithKind("Desktop").WithName(d.Name).WithUID(d.UID).WithController(true)
	template := vm.VirtualMachineInstanceTemplateSpec().
		WithObjectMeta(apply.ObjectMeta().WithLabels(map[string]string{"desktop": d.Name})).
		WithSpec(vm.VirtualMachineInstanceSpec().
			WithDomain(vm.DomainSpec().
				WithMemory(vm.Memory().WithGuest(d.Spec.Memory)).
				WithDevices(vm.Devices().WithDisks(vm.Disk().WithName("root").WithDisk(vm.DiskTarget().WithBus(vmi.DiskBusVirtio))))).
			WithVolumes(vm.Volume().WithName("root").WithContainerDisk(vm.ContainerDisk().WithImage(d.Spec.Image))))
	desired := vm.VirtualMachine(d.Name, d.Namespace).
		WithOwnerReferences(owner).
		WithSpec(vm.VirtualMachineSpec().WithRunStrategy(vmi.RunAlways).WithTemplate(template))
	if _, err := o.client.VirtualMachines(d.Namespace).Apply(ctx, desired, metav1.ApplyOptions{FieldManager: "desktops", Force: true}); err != nil {
		return err
	}

	v := o.vmis.Key(key)
	if v == nil || v.Status.Phase != vmi.PhaseRunning {
		return nil // the informer calls again when the guest runs
	}
	paused := v.Status.Condition(vmi.ConditionPaused) != nil
	switch vmis := o.client.VirtualMachineInstances(d.Namespace); {
	case d.Spec.Idle && !paused:
		return vmis.Pause(ctx, d.Name, vmi.PauseOptions{})
	case !d.Spec.Idle && paused:
		return vmis.Unpause(ctx, d.Name, vmi.UnpauseOptions{})
	}
	return nil
}

// end

// begin test

func TestAnIdleDesktopIsPaused(t *testing.T) {
	d := &Desktop{Spec: DesktopSpec{Image: "example/desktop:1", Memory: resource.MustParse("1Gi"), Idle: true}}
	d.Name, d.Namespace = "ann", "default"
	server := fake.Serving([]vmi.Definition{Desktops.Definition}, d)
	o, err := NewOperator(server.Config())
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); o.Run(ctx) }()
	defer func() { stop(); <-ended }()

	// The operator makes the VM.
	c, err := client.New(server.Config())
	require.NoError(t, err)
	made, err := client.WaitFor(ctx, c.VirtualMachines("default"), "ann", func(*vmi.VirtualMachine) (bool, error) { return true, nil })
	require.NoError(t, err)
	require.Equal(t, "1Gi", made.Spec.Template.Spec.Domain.Memory.Guest.String())

	// Podvisor would start it: its VMI runs. The operator pauses the guest.
	server.Add(vmitest.InstanceOf(made, vmitest.InPhase(vmi.PhaseRunning)))
	paused := func(want bool) {
		_, err := client.WaitFor(ctx, c.VirtualMachineInstances("default"), "ann", func(v *vmi.VirtualMachineInstance) (bool, error) {
			return (v.Status.Condition(vmi.ConditionPaused) != nil) == want, nil
		})
		require.NoError(t, err)
	}
	paused(true)

	// Its user is back.
	_, err = client.Of(c, Desktops, "default").Patch(ctx, "ann", types.MergePatchType, []byte(`{"spec":{"idle":false}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	paused(false)
}

// end

func TestThePageOnOperatorsShowsThisOne(t *testing.T) {
	source, err := os.ReadFile("desktop_test.go")
	require.NoError(t, err)
	page, err := os.ReadFile("../../docs/operator.md")
	require.NoError(t, err)
	parts := strings.Split(string(source), "\n// begin ")[1:]
	require.Len(t, parts, 4)
	for _, p := range parts {
		name, rest, _ := strings.Cut(p, "\n\n")
		shown, _, ok := strings.Cut(rest, "\n// end\n")
		require.True(t, ok, name)
		require.True(t, strings.Contains(string(page), "```go\n"+shown+"```\n"), "docs/operator.md shows another %s:\n%s", name, shown)
	}
}
