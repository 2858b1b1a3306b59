package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
)

// podKind is the kind of what VMIs run in.
const podKind = "Pod"

// Launchers is what pods are compared with that virt-controller creates, and pods that it
// names in the status of VMIs.
type Launchers struct {
	// Rendering returns how the build of virt-controller that a pod names renders pods, as
	// the cluster is configured now, without Facts. False: this process has another build,
	// and the review is refused until one with that build has it. Required.
	Rendering func(build string) (pod.Config, bool)
	// Kube reads pods and priority classes. Required.
	Kube kubernetes.Interface
	// Facts reads what a pod of the VMI is rendered by besides the configuration, from the
	// API server. Required.
	Facts func(context.Context, *vmi.VirtualMachineInstance) (pod.Facts, error)
	// Creating returns the pod of this name that this process has rendered for the VMI of
	// this name and UID, and is creating now. A pod that differs from it is compared with what
	// follows from the VMI. Nil, as the function or as its answer: there is none.
	Creating func(namespace, pod, instance string, uid types.UID) *corev1.Pod
	// Cached returns the VMI of this name and its facts as they were a moment ago. A pod
	// that differs from what follows from them is compared with what the API server has.
	// Nil, as the function or as its answer: nothing is known.
	Cached func(namespace, name string) (*vmi.VirtualMachineInstance, pod.Facts)
	// CachedPod returns the launcher pod of this name as it was a moment ago. Nil, as the
	// function or as its answer: none is known.
	CachedPod func(namespace, name string) *corev1.Pod
	// Fields are fields of launcher pods that the admission of others may set, as
	// [pod.Admitted] has them.
	Fields []string
}

const podNotAskedFor = "virt-controller may create pods only that one VirtualMachineInstance controls"

// errOtherBuild is that another build of virt-controller rendered a pod, so that it is not
// known here what it must be.
var errOtherBuild = errors.New("the pod was rendered by another build of virt-controller than that of the replica that was asked, " +
	"as while it is upgraded: the next try may ask one with this build")

// podRefusal says why virt-controller must not create the pod, or nothing: it must be the
// launcher of the VMI that controls it. The error is that this is not known.
func (o Owned) podRefusal(ctx context.Context, req *admissionv1.AdmissionRequest) (string, error) {
	var tree map[string]any
	if err := json.Unmarshal(req.Object.Raw, &tree); err != nil {
		return fmt.Sprintf("decode the Pod: %v", err), nil
	}
	made, err := namedIn(tree)
	if err != nil {
		return fmt.Sprintf("decode the Pod: %v", err), nil
	}
	ref := metav1.GetControllerOfNoCopy(made)
	if ref == nil || len(made.OwnerReferences) != 1 || ref.APIVersion != vmi.GroupVersion.String() || ref.Kind != vmi.VirtualMachineInstances.Kind {
		return podNotAskedFor, nil
	}
	l := o.Launchers
	config, ok := l.Rendering(launched.Build(made))
	if !ok {
		return "", errOtherBuild
	}
	config.Role = pod.RoleFor(made)
	admitted := pod.Admitted{Fields: l.Fields}
	if l.Creating != nil && config.Role.Name != vmi.RoleTarget {
		if p := l.Creating(req.Namespace, made.Name, ref.Name, ref.UID); p != nil {
			if other, err := pod.Differences(p, tree, admitted); err == nil && len(other) == 0 {
				return "", nil
			}
		}
	}
	if l.Cached != nil && config.Role.Name != vmi.RoleTarget {
		if v, facts := l.Cached(req.Namespace, ref.Name); v != nil && v.UID == ref.UID && v.DeletionTimestamp == nil {
			if other, err := differencesOf(v, config, facts, tree, admitted); err == nil && len(other) == 0 {
				return "", nil
			}
		}
	}
	object := fmt.Sprintf("%s %s/%s", ref.Kind, req.Namespace, ref.Name)
	v, err := o.Owners.VirtualMachineInstances(req.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return object + " does not exist, so virt-controller creates no pod for it", nil
	case err != nil:
		return "", fmt.Errorf("read %s, which controls the pod: %w", object, err)
	case v.UID != ref.UID:
		return object + " is another one than the one that is to control the pod", nil
	case v.DeletionTimestamp != nil:
		return object + " is being deleted, so virt-controller creates no pod for it", nil
	}
	facts, err := l.Facts(ctx, v)
	if err != nil {
		return "", fmt.Errorf("read what the pod of %s depends on: %w", object, err)
	}
	if config.Role.Name == vmi.RoleTarget {
		var why string
		if why, facts.Move, err = o.target(ctx, v, config.Role.For); why != "" || err != nil {
			return why, err
		}
	}
	if class := made.Spec.PriorityClassName; v.Spec.PriorityClassName == "" && class != "" {
		if admitted.PriorityClass, err = l.defaultClass(ctx, class); err != nil {
			return "", err
		}
	}
	other, err := differencesOf(v, config, facts, tree, admitted)
	switch {
	case err != nil:
		return fmt.Sprintf("%s has no pod: %v", object, err), nil
	case len(other) > 0:
		return fmt.Sprintf("%s asks for a pod with another %s: what the admission of others sets in launcher pods is permitted by POD_FIELDS of the Deployment virt-controller",
			object, strings.Join(other, ", ")), nil
	}
	return "", nil
}

// namedIn is of a pod what says whose it is, and its priority class.
func namedIn(tree map[string]any) (*corev1.Pod, error) {
	var p corev1.Pod
	all, _ := tree["metadata"].(map[string]any)
	some := map[string]any{}
	for _, k := range []string{"name", "labels", "annotations", "ownerReferences"} {
		if v, ok := all[k]; ok {
			some[k] = v
		}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(some, &p.ObjectMeta); err != nil {
		return nil, err
	}
	var err error
	p.Spec.PriorityClassName, _, err = unstructured.NestedString(tree, "spec", "priorityClassName")
	return &p, err
}

// differencesOf are the fields in which the pod that was made differs from the launcher of
// the VMI. The error is that the VMI has none.
func differencesOf(v *vmi.VirtualMachineInstance, c pod.Config, f pod.Facts, made any, a pod.Admitted) ([]string, error) {
	c.Facts = f
	rendered, err := pod.Render(v, c)
	if err != nil {
		return nil, err
	}
	return pod.Differences(rendered, made, a)
}

// defaultClass returns the name if it is the class of pods that name none, or "".
func (l Launchers) defaultClass(ctx context.Context, name string) (string, error) {
	c, err := l.Kube.SchedulingV1().PriorityClasses().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read PriorityClass %s of the pod: %w", name, err)
	case c.GlobalDefault:
		return name, nil
	}
	return "", nil
}

// namedPods is what of a VMI says which pods it has.
type namedPods struct {
	Metadata struct {
		Name string    `json:"name"`
		UID  types.UID `json:"uid"`
	} `json:"metadata"`
	Status struct {
		ActivePods     map[types.UID]string `json:"activePods"`
		MigrationState struct {
			SourcePod string `json:"sourcePod"`
			TargetPod string `json:"targetPod"`
		} `json:"migrationState"`
	} `json:"status"`
}

// statusRefusal says why virt-controller must not write the status of the VMI, or nothing:
// a pod that it names in activePods, and did not before, must be one that was made for the
// VMI and is on that node. Handlers connect to these pods. The error is that this is not
// known.
func (o Owned) statusRefusal(ctx context.Context, req *admissionv1.AdmissionRequest) (string, error) {
	var was, is namedPods
	if err := errors.Join(json.Unmarshal(req.OldObject.Raw, &was), json.Unmarshal(req.Object.Raw, &is)); err != nil {
		return fmt.Sprintf("decode the status: %v", err), nil
	}
	v := &vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: is.Metadata.Name, UID: is.Metadata.UID}}
	names := []string{pod.Name(v), is.Status.MigrationState.TargetPod, is.Status.MigrationState.SourcePod}
	for uid, node := range is.Status.ActivePods {
		if was.Status.ActivePods[uid] == node {
			continue
		}
		its, err := o.Launchers.isOf(ctx, v, names, uid, node)
		switch {
		case err != nil:
			return "", err
		case !its:
			return fmt.Sprintf("status.activePods names pod %s on node %q, which was not made for VirtualMachineInstance %s/%s or is not there", uid, node, v.Namespace, v.Name), nil
		}
	}
	return "", nil
}

// isOf says that a pod with one of the names has the UID, is on the node, and was made for
// the VMI.
func (l Launchers) isOf(ctx context.Context, v *vmi.VirtualMachineInstance, names []string, uid types.UID, node string) (bool, error) {
	right := func(p *corev1.Pod) bool {
		return p != nil && p.UID == uid && p.Spec.NodeName == node && node != "" && launched.Adoptable(p, v)
	}
	if l.CachedPod != nil && slices.ContainsFunc(names, func(n string) bool { return right(l.CachedPod(v.Namespace, n)) }) {
		return true, nil
	}
	for _, n := range names {
		if n == "" {
			continue
		}
		p, err := l.Kube.CoreV1().Pods(v.Namespace).Get(ctx, n, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("read pod %s/%s, which the status may name: %w", v.Namespace, n, err)
		}
		if err == nil && right(p) {
			return true, nil
		}
	}
	return false, nil
}
