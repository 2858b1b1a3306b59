package admission

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
)

// target says why virt-controller must not create a pod for the migration of the VMI, or
// what that pod depends on: the migration must exist, be of this VMI, and not have ended.
// Otherwise a pod with the volumes of the VMI could be made at any time. The error is that
// this is not known.
func (o Owned) target(ctx context.Context, v *vmi.VirtualMachineInstance, of pod.Object) (string, *pod.Move, error) {
	object := fmt.Sprintf("%s %s/%s", vmi.VirtualMachineInstanceMigrations.Kind, v.Namespace, of.Name)
	if of.Name == "" {
		return "the pod is for a migration and does not name it", nil, nil
	}
	m, err := o.Owners.VirtualMachineInstanceMigrations(v.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return object + " does not exist, so virt-controller creates no pod for it", nil, nil
	case err != nil:
		return "", nil, fmt.Errorf("read %s, which the pod is for: %w", object, err)
	case m.UID != of.UID:
		return object + " is another one than the one that the pod is for", nil, nil
	case m.DeletionTimestamp != nil || m.Status.Phase.Final():
		return object + " has ended or is being deleted, so virt-controller creates no pod for it", nil, nil
	case m.Spec.VMIName != v.Name:
		return object + " is of another VirtualMachineInstance than the one that is to control the pod", nil, nil
	}
	source, err := o.Launchers.Kube.CoreV1().Pods(v.Namespace).Get(ctx, instance.ActivePodName(v), metav1.GetOptions{})
	if err != nil {
		return "", nil, fmt.Errorf("read the pod that %s/%s runs in: %w", v.Namespace, v.Name, err)
	}
	var n *corev1.Node
	if name := source.Spec.NodeName; name != "" {
		if n, err = o.Launchers.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return "", nil, fmt.Errorf("read node %s, which the VMI runs on: %w", name, err)
		}
		if err != nil {
			n = nil
		}
	}
	return "", pod.MoveOf(m, source, n), nil
}
