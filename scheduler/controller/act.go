package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// refusal is the error of a pod that the API server does not accept as it is:
// quota, admission, a namespace that goes.
type refusal struct {
	scheduler.Finding
	err error
}

func (r *refusal) Error() string { return r.Reason + ": " + r.Message }
func (r *refusal) Unwrap() error { return r.err }

// act does the plan's actions in order. A write of the machine makes o.VMI what
// the API server answered, so that the next one is made on top of it.
func (k *Controller) act(ctx context.Context, o *instance.Observed, p scheduler.Plan) error {
	for _, a := range p.Actions {
		if err := k.do(ctx, o, a); err != nil {
			return err
		}
	}
	return nil
}

func (k *Controller) do(ctx context.Context, o *instance.Observed, a scheduler.Action) error {
	log := k.log.With("vmi", o.VMI.Namespace+"/"+o.VMI.Name)
	switch a := a.(type) {
	case scheduler.AddFinalizer:
		return k.finalizers(ctx, o, append(slices.Clone(o.VMI.Finalizers), vmi.Finalizer))
	case scheduler.RemoveFinalizer:
		log.Info("let the machine go")
		return k.finalizers(ctx, o, slices.DeleteFunc(slices.Clone(o.VMI.Finalizers), func(f string) bool { return f == vmi.Finalizer }))
	case scheduler.CreatePod:
		log.Info("create the pod", "pod", a.Pod.Name)
		return k.createPod(ctx, o, a.Pod)
	case scheduler.DeletePod:
		log.Info("delete the pod", "pod", a.Name)
		return k.deletePod(ctx, o.VMI.Namespace, a)
	case scheduler.WriteStatus:
		log.Info("write the status", "phase", a.Status.Phase, "node", a.Status.NodeName, "why", why(&a.Status))
		return k.writeStatus(ctx, o, a.Status)
	case scheduler.Emit:
		k.events.Event(reference(o.VMI), a.Type, a.Reason, shorten(a.Message))
		return nil
	default:
		return fmt.Errorf("unknown action %T", a)
	}
}

// why is the reason that the status gives for not being better.
func why(s *vmi.VirtualMachineInstanceStatus) string {
	for _, t := range []vmi.ConditionType{vmi.ConditionSynchronized, vmi.ConditionPodScheduled} {
		if c := s.Condition(t); c != nil && c.Status == corev1.ConditionFalse {
			return c.Reason
		}
	}
	return s.Reason
}

// finalizers writes the machine's finalizers, unless it changed in between.
func (k *Controller) finalizers(ctx context.Context, o *instance.Observed, f []string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"finalizers": f, "uid": o.VMI.UID, "resourceVersion": o.VMI.ResourceVersion,
	}})
	if err != nil {
		return err
	}
	v, err := k.cfg.Client.VirtualMachineInstances(o.VMI.Namespace).Patch(ctx, o.VMI.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return k.wrote(o, v, "write the finalizers", err)
}

func (k *Controller) writeStatus(ctx context.Context, o *instance.Observed, s vmi.VirtualMachineInstanceStatus) error {
	changed := o.VMI.DeepCopy()
	changed.Status = s
	v, err := client.WriteStatus(ctx, k.cfg.Client.VirtualMachineInstances(o.VMI.Namespace), o.VMI, changed)
	return k.wrote(o, v, "write the status", err)
}

// wrote remembers the answer to a write.
func (k *Controller) wrote(o *instance.Observed, v *vmi.VirtualMachineInstance, what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s of %s/%s: %w", what, o.VMI.Namespace, o.VMI.Name, err)
	}
	o.VMI = v
	k.own.remember(v)
	return nil
}

// createPod creates the pod. A pod of that name that is the machine's is the one
// that was to be made.
func (k *Controller) createPod(ctx context.Context, o *instance.Observed, p *corev1.Pod) error {
	created, err := k.cfg.Kube.CoreV1().Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		created, err = k.pod(ctx, types.NamespacedName{Namespace: p.Namespace, Name: p.Name})
		switch {
		case err != nil:
		case created == nil:
			err = errors.New("it was there and is gone")
		case !pod.Owned(created, o.VMI):
			return &refusal{Finding: instance.Taken(p.Name)}
		case created.DeletionTimestamp != nil:
			err = errors.New("the one before it has not gone yet")
		}
	}
	switch {
	case err == nil:
		o.Pod = created
		return nil
	case isRefusal(err):
		return &refusal{scheduler.Finding{Reason: instance.FailedCreate, Message: err.Error()}, err}
	}
	return fmt.Errorf("create pod %s/%s: %w", p.Namespace, p.Name, err)
}

// isRefusal says that the API server understood and does not want the pod.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// deletePod deletes the pod if it is still the same.
func (k *Controller) deletePod(ctx context.Context, namespace string, a scheduler.DeletePod) error {
	err := k.cfg.Kube.CoreV1().Pods(namespace).Delete(ctx, a.Name, *metav1.NewPreconditionDeleteOptions(string(a.UID)))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete pod %s/%s: %w", namespace, a.Name, err)
	}
	return nil
}

// pod reads a pod from the API server, or nil if it does not exist.
func (k *Controller) pod(ctx context.Context, n types.NamespacedName) (*corev1.Pod, error) {
	p, err := k.cfg.Kube.CoreV1().Pods(n.Namespace).Get(ctx, n.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return p, err
}
