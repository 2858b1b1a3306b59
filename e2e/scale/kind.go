package scale

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// kind is what there are many of.
type kind struct {
	name   string
	create func(context.Context, *rig, string) error
	remove func(context.Context, *rig, string) error
	watch  func(context.Context, *rig, metav1.ListOptions) (watch.Interface, error)
	list   func(context.Context, *rig, metav1.ListOptions) (runtime.Object, error)
	// runs says whether the object and its guest run.
	runs func(metav1.Object) bool
	// started and ended are the reasons of the events that each object's VMI has once it
	// runs, and more once it is gone.
	started, ended []string
}

// kinds are all of them.
var kinds = []kind{{
	name: "vmi",
	create: func(ctx context.Context, r *rig, name string) error {
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
	create: func(ctx context.Context, r *rig, name string) error {
		v := vmitest.NewVM(vmi.RunAlways)
		v.ObjectMeta = metav1.ObjectMeta{Name: name}
		v.Spec.Template = &vmi.VirtualMachineInstanceTemplateSpec{Spec: guest(name).Spec}
		_, err := r.vmis.VirtualMachines(namespace).Create(ctx, v, metav1.CreateOptions{})
		return created(err)
	},
	remove: func(ctx context.Context, r *rig, name string) error {
		return gone(r.vmis.VirtualMachines(namespace).Delete(ctx, name, metav1.DeleteOptions{}))
	},
	watch: func(ctx context.Context, r *rig, o metav1.ListOptions) (watch.Interface, error) {
		return r.vmis.VirtualMachines(namespace).Watch(ctx, o)
	},
	list: func(ctx context.Context, r *rig, o metav1.ListOptions) (runtime.Object, error) {
		return r.vmis.VirtualMachines(namespace).List(ctx, o)
	},
	runs: func(o metav1.Object) bool {
		v, ok := o.(*vmi.VirtualMachine)
		return ok && v.Status.PrintableStatus == vmi.StatusRunning
	},
	started: []string{"SuccessfulCreate", "Started"},
	ended:   []string{"ShuttingDown", "Deleted"},
}}

func kindNamed(name string) (kind, error) {
	for _, k := range kinds {
		if k.name == name {
			return k, nil
		}
	}
	return kind{}, fmt.Errorf("kind %q: give vmi or vm", name)
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
