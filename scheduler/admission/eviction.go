package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/config"
)

// Evictions answers admission reviews at [EvictionPath]: it refuses the eviction
// of a pod whose VMI must not end by it, and marks the VMIs that have to leave their
// node.
type Evictions struct {
	// Kube reads the pods. Required.
	Kube kubernetes.Interface
	// VMIs reads and marks the VMIs. Required.
	VMIs *client.Client
	// Cached returns the cached pod of this name and its VMI, or nil for what is not
	// in the cache. It saves requests when an eviction is repeated every few seconds.
	// Nil: nothing is cached.
	Cached func(namespace, pod string) (*corev1.Pod, *vmi.VirtualMachineInstance)
	// Settings returns the configuration of the cluster that is in force. Nil: the
	// default configuration.
	Settings func() config.Config
	// Logger logs each eviction that is refused. Nil: nothing is logged.
	Logger *slog.Logger
}

// ServeHTTP answers one review. An eviction is refused as by a disruption budget,
// so that its client waits and tries again.
func (e Evictions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer(w, r, e.Logger, func(ctx context.Context, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		if why := e.refusal(ctx, req); why != "" {
			return refused(apierrors.NewTooManyRequests(why, 0))
		}
		return allowed()
	})
}

// refusal says why the pod must not be evicted, or nothing. The cache is enough to
// refuse: the next attempt is judged anew. It is not enough to allow: a pod that has
// ended may have been replaced by another of the same name.
func (e Evictions) refusal(ctx context.Context, req *admissionv1.AdmissionRequest) string {
	profile := inForce(e.Settings).Defaults
	if e.Cached != nil {
		if pod, v := e.Cached(req.Namespace, req.Name); pod != nil && v != nil {
			if d := instance.Eviction(v, pod, profile); d.Refusal != "" && d.Leave == "" {
				return d.Refusal
			}
		}
	}
	pod, v, err := e.read(ctx, req.Namespace, req.Name)
	switch {
	case err != nil:
		return fmt.Sprintf("kubevirt failed getting the vmi: pod %s/%s and its VMI are not read: %v; try again", req.Namespace, req.Name, err)
	case v == nil:
		return ""
	}
	d := instance.Eviction(v, pod, profile)
	if d.Leave == "" || isDryRun(req) {
		return d.Refusal
	}
	if err := e.mark(ctx, v, d.Leave, sourceOf(req)); err != nil {
		return fmt.Sprintf("kubevirt failed marking the vmi for eviction: status.evacuationNodeName of VMI %q is not written: %v; try again", v.Namespace+"/"+v.Name, err)
	}
	return d.Refusal
}

// read gets the pod and the VMI that it names as its controller from the API
// server. The VMI is nil if there is none, or no such pod.
func (e Evictions) read(ctx context.Context, namespace, name string) (*corev1.Pod, *vmi.VirtualMachineInstance, error) {
	pod, err := e.Kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, ignoreNotFound(err)
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind != vmi.VirtualMachineInstances.Kind || schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).Group != vmi.GroupName {
		return pod, nil, nil
	}
	v, err := e.VMIs.VirtualMachineInstances(namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	// What a VMI that cannot be decoded says of evictions is not known: as if it said
	// nothing, so that its node can be drained.
	if err != nil && !errors.Is(err, vmi.ErrUnreadable) {
		return pod, nil, ignoreNotFound(err)
	}
	return pod, v, nil
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// mark writes the node that the VMI has to leave, and before who asks for it.
func (e Evictions) mark(ctx context.Context, v *vmi.VirtualMachineInstance, node, source string) error {
	if v.Annotations[vmi.EvictionSourceAnnotation] != source {
		now, err := e.annotate(ctx, v, source)
		if err != nil {
			return err
		}
		v = now
	}
	changed := v.DeepCopy()
	changed.Status.Evacuate(node, metav1.Now())
	_, err := client.WriteStatus(ctx, e.VMIs.VirtualMachineInstances(v.Namespace), v, changed)
	if errors.Is(err, vmi.ErrUnreadable) {
		return nil // it was written
	}
	return err
}

// annotate writes who asks for the eviction. Empty: it is no one that counts.
func (e Evictions) annotate(ctx context.Context, v *vmi.VirtualMachineInstance, source string) (*vmi.VirtualMachineInstance, error) {
	value := any(source)
	if source == "" {
		value = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": v.UID, "resourceVersion": v.ResourceVersion, "annotations": map[string]any{vmi.EvictionSourceAnnotation: value},
	}})
	if err != nil {
		return nil, err
	}
	return e.VMIs.VirtualMachineInstances(v.Namespace).Patch(ctx, v.Name, types.MergePatchType, patch, metav1.PatchOptions{})
}

// sourceOf is who asks for the eviction, as the annotation of the VMI has it. Empty: it is
// not the descheduler.
func sourceOf(req *admissionv1.AdmissionRequest) string {
	var e policyv1.Eviction
	if json.Unmarshal(req.Object.Raw, &e) == nil && e.Annotations["requested-by"] == "sigs.k8s.io/descheduler" {
		return vmi.EvictionByDescheduler
	}
	return ""
}

// isDryRun says that nothing may be written. An eviction can say so in its options
// too, which reach a webhook in the object only.
func isDryRun(req *admissionv1.AdmissionRequest) bool {
	if req.DryRun != nil && *req.DryRun {
		return true
	}
	var e policyv1.Eviction
	if err := json.Unmarshal(req.Object.Raw, &e); err != nil {
		return true
	}
	return e.DeleteOptions != nil && len(e.DeleteOptions.DryRun) > 0
}
