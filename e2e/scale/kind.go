package scale

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/vmitest"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// kind is what there are many of.
type kind struct {
	name string
	// one says that one object makes all that there are many of, and not each of them one.
	one bool
	// create makes the object of a name, which makes n of what there are many of.
	create func(ctx context.Context, r *rig, name string, n int) error
	remove func(ctx context.Context, r *rig, name string) error
	watch  func(context.Context, *rig, metav1.ListOptions) (watch.Interface, error)
	list   func(context.Context, *rig, metav1.ListOptions) (runtime.Object, error)
	// runs says whether the object and its guest run.
	runs func(metav1.Object) bool
	// started and ended are the reasons of the events that each object's VMI has once it
	// runs, and more once it is gone.
	started, ended []string
}

// objects are the names of the objects that make n, and how many each of them makes.
func (k kind) objects(n int) (names []string, each int) {
	if k.one {
		return []string{fmt.Sprintf("%s-%d", k.name, n)}, n
	}
	names = make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d-%d", k.name, n, i)
	}
	return names, 1
}

// kinds are all of them.
var kinds = []kind{{
	name: "vmi",
	create: func(ctx context.Context, r *rig, name string, _ int) error {
		_, err := r.vmis.VirtualMachineInstances(namespace).Create(ctx, guest(name), metav1.CreateOptions{})
		return created(err)
	},
	remove: func(ctx context.Context, r *rig, name string) error {
		return gone(r.vmis.VirtualMachineInstances(namespace).Delete(ctx, name, metav1.DeleteOptions{}))
	},
	watch: func(ctx context.Context, r *rig, o metav1.ListOptions) (watch.Interface, error) {
		return r.vmis.VirtualMachineInstances(namespace).Watch(ctx, o)
	},
	list: func(ctx context.Context, r *rig, o metav1.ListOptions) (runtime.Object, error) {
		return r.vmis.VirtualMachineInstances(namespace).List(ctx, o)
	},
	runs: func(o metav1.Object) bool {
		v, ok := o.(*vmi.VirtualMachineInstance)
		return ok && v.Status.Phase == vmi.PhaseRunning
	},
	started: []string{"SuccessfulCreate", "Started"},
	ended:   []string{"ShuttingDown", "Deleted"},
}, {
	name: "vm",
	create: func(ctx context.Context, r *rig, name string, _ int) error {
		v := alone(name)
		v.ObjectMeta = metav1.ObjectMeta{Name: name}
		_, err := r.vmis.VirtualMachines(namespace).Create(ctx, v, metav1.CreateOptions{})
		return created(err)
	},
	remove: func(ctx context.Context, r *rig, name string) error {
		return gone(r.vmis.VirtualMachines(namespace).Delete(ctx, name, metav1.DeleteOptions{}))
	},
	watch: watchVMs, list: listVMs, runs: runsVM,
	started: []string{"SuccessfulCreate", "Started"},
	ended:   []string{"ShuttingDown", "Deleted"},
}, {
	// The VMs of one pool, which deletes them when it is scaled in.
	name: "pool", one: true,
	create: func(ctx context.Context, r *rig, name string, n int) error {
		_, err := r.pools().Create(ctx, poolOf(name, n), metav1.CreateOptions{})
		return created(err)
	},
	remove: func(ctx context.Context, r *rig, name string) error {
		_, err := r.pools().Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{})
		return gone(err)
	},
	watch: watchVMs, list: listVMs, runs: runsVM,
	started: []string{"SuccessfulCreate", "Started"},
	ended:   []string{"ShuttingDown", "Deleted"},
}, {
	// Pods of the shape of launchers that only a kubelet looks at: what they cost the API
	// server is no cost of Podvisor's.
	name: "pod",
	create: func(ctx context.Context, r *rig, name string, _ int) error {
		p, err := plain(name)
		if err != nil {
			return err
		}
		_, err = r.kube.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{})
		return created(err)
	},
	remove: func(ctx context.Context, r *rig, name string) error {
		return gone(r.kube.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{}))
	},
	watch: func(ctx context.Context, r *rig, o metav1.ListOptions) (watch.Interface, error) {
		return r.kube.CoreV1().Pods(namespace).Watch(ctx, o)
	},
	list: func(ctx context.Context, r *rig, o metav1.ListOptions) (runtime.Object, error) {
		return r.kube.CoreV1().Pods(namespace).List(ctx, o)
	},
	runs: func(o metav1.Object) bool {
		p, ok := o.(*corev1.Pod)
		return ok && p.Status.Phase == corev1.PodRunning
	},
}}

// plain is the pod of a guest without what makes it a launcher's.
func plain(name string) (*corev1.Pod, error) {
	v := guest(name)
	v.Namespace, v.UID = namespace, "1"
	p, err := pod.Render(v, pod.Config{Launcher: pod.Launcher{Image: launcherImage, AllowEmulation: true}})
	if err != nil {
		return nil, err
	}
	p.ObjectMeta = metav1.ObjectMeta{Name: name}
	p.Spec.ReadinessGates = nil
	return p, nil
}

func watchVMs(ctx context.Context, r *rig, o metav1.ListOptions) (watch.Interface, error) {
	return r.vmis.VirtualMachines(namespace).Watch(ctx, o)
}

func listVMs(ctx context.Context, r *rig, o metav1.ListOptions) (runtime.Object, error) {
	return r.vmis.VirtualMachines(namespace).List(ctx, o)
}

func runsVM(o metav1.Object) bool {
	v, ok := o.(*vmi.VirtualMachine)
	return ok && v.Status.PrintableStatus == vmi.StatusRunning
}

// alone is a VM whose guest has the name.
func alone(name string) *vmi.VirtualMachine {
	v := vmitest.NewVM(vmi.RunAlways)
	v.Spec.Template = &vmi.VirtualMachineInstanceTemplateSpec{Spec: guest(name).Spec}
	return v
}

// poolOf is a pool of n VMs like those alone.
func poolOf(name string, n int) *vmpool.VirtualMachinePool {
	labels := map[string]string{"pool": name}
	p := &vmpool.VirtualMachinePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Replicas, p.Spec.Selector = new(int32(n)), &metav1.LabelSelector{MatchLabels: labels}
	p.Spec.VirtualMachineTemplate = &vmpool.VirtualMachineTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: alone(name).Spec}
	return p
}

func (r *rig) pools() client.Objects[*vmpool.VirtualMachinePool, *vmpool.VirtualMachinePoolList] {
	return client.Of(r.vmis, vmpool.VirtualMachinePools, namespace)
}

func kindNamed(name string) (kind, error) {
	for _, k := range kinds {
		if k.name == name {
			return k, nil
		}
	}
	return kind{}, fmt.Errorf("kind %q: give vmi, vm, pool or pod", name)
}

// created is nil if the object is there: a request whose answer was lost may have made it.
func created(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// gone is nil if the object is not there.
func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
