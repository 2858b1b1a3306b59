package launched

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/network/cni"
	"github.com/podvisor/podvisor/vmi"
)

// Annotations that the renderer of a launcher pod writes.
const (
	// BuildAnnotation names what rendered the pod.
	BuildAnnotation = "podvisor.io/build"
	// OverheadAnnotation is what the pod asks for beside the guest's memory, in bytes.
	OverheadAnnotation = "kubevirt.io/memory-overhead-bytes"
)

// Owned says that the VMI controls the pod.
func Owned(p *corev1.Pod, v *vmi.VirtualMachineInstance) bool {
	return metav1.IsControlledBy(p, v)
}

// Adoptable says that the object controls the pod, and that the pod has the labels of
// a launcher that was made for it. Only such a pod is handed to a node. The API server
// takes the owner and the labels from virt-controller alone: see
// manifests/policies/launcher.yaml.
func Adoptable(p *corev1.Pod, o metav1.Object) bool {
	return metav1.IsControlledBy(p, o) && Creator(p) == o.GetUID()
}

// Alike says that two pods were made for the same: that the same object controls them, and
// that both are its launchers, in the same role and for the same migration.
func Alike(a, b *corev1.Pod) bool {
	x, y := metav1.GetControllerOfNoCopy(a), metav1.GetControllerOfNoCopy(b)
	return x != nil && y != nil && x.UID == y.UID && Creator(a) == x.UID && Creator(b) == x.UID &&
		a.Labels[vmi.MigrationJobLabel] == b.Labels[vmi.MigrationJobLabel]
}

// MadeFor says that the VMI controls the pod, or that it did: deleting a VMI with
// --cascade=orphan takes the owner reference from its pod. That is enough to end a
// pod, and not to hand it over.
func MadeFor(p *corev1.Pod, v *vmi.VirtualMachineInstance) bool {
	return Owned(p, v) || v.UID != "" && Creator(p) == v.UID
}

// Creator is the UID of the VMI that a launcher pod was made for. Empty: it is no
// launcher pod.
func Creator(p *corev1.Pod) types.UID {
	if p.Labels[vmi.AppLabel] != vmi.LauncherApp {
		return ""
	}
	return types.UID(p.Labels[vmi.CreatedByLabel])
}

// InstanceName is the name of the VMI that a launcher pod was made for, whether or
// not the VMI still controls it. Empty: the pod does not say.
func InstanceName(p *corev1.Pod) string {
	if ref := metav1.GetControllerOfNoCopy(p); ref != nil && ref.Kind == vmi.VirtualMachineInstances.Kind {
		return ref.Name
	}
	if Creator(p) == "" {
		return ""
	}
	return p.Annotations[vmi.DomainAnnotation]
}

// Former are those of the pods that were made for an earlier VMI of the same name and that
// may still run a guest.
func Former(v *vmi.VirtualMachineInstance, pods []*corev1.Pod) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range pods {
		if InstanceName(p) == v.Name && Creator(p) != "" && !MadeFor(p, v) && !Ended(p) {
			out = append(out, p)
		}
	}
	return out
}

// Role is the role that the labels of a pod say it was made for. A target becomes the
// pod that the VMI runs in without a change of its labels: the VMI's status says so.
func Role(p *corev1.Pod) vmi.Role {
	switch {
	case p.Labels[vmi.AppLabel] == vmi.AttachmentApp:
		return vmi.RoleAttachment
	case p.Labels[vmi.MigrationJobLabel] != "":
		return vmi.RoleTarget
	}
	return vmi.RoleActive
}

// Build is that of the configuration that the pod was rendered with.
func Build(p *corev1.Pod) string { return p.Annotations[BuildAnnotation] }

// MemoryOverhead is what a launcher pod asks for beside its guest's memory, or nil
// if the pod does not say: the configuration may be another one now.
func MemoryOverhead(p *corev1.Pod) *resource.Quantity {
	n, err := strconv.ParseInt(p.Annotations[OverheadAnnotation], 10, 64)
	if err != nil || n < 0 {
		return nil
	}
	return resource.NewQuantity(n, resource.BinarySI)
}

// ProcessorLabels are the labels that the pod's node must have for the processor of
// the guest, each as name=value.
func ProcessorLabels(p *corev1.Pod) []string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(p.Spec.NodeSelector)) {
		if isProcessorLabel(k) {
			all = append(all, k+"="+p.Spec.NodeSelector[k])
		}
	}
	return all
}

func isProcessorLabel(k string) bool {
	return strings.HasPrefix(k, vmi.CPUModelLabelPrefix) || strings.HasPrefix(k, vmi.CPUMigrationLabelPrefix) ||
		strings.HasPrefix(k, vmi.CPUFeatureLabelPrefix) || k == vmi.CPUManagerLabel
}

// Keep drops from the labels, annotations and node selector of a launcher pod what neither
// this package nor package cni reads, so that a cache of pods is small.
func Keep(p *corev1.Pod) {
	p.Labels = only(p.Labels, func(k string) bool {
		return k == vmi.AppLabel || k == vmi.CreatedByLabel || k == vmi.MigrationJobLabel
	})
	p.Annotations = only(p.Annotations, func(k string) bool {
		return k == vmi.DomainAnnotation || k == vmi.MigrationJobAnnotation || k == OverheadAnnotation || k == cni.StatusAnnotation ||
			k == vmi.EvictionInProgressAnnotation
	})
	p.Spec.NodeSelector = only(p.Spec.NodeSelector, isProcessorLabel)
}

// only are the entries whose keys are kept, in a map of their size. Nil: there are none.
func only(all map[string]string, keep func(key string) bool) map[string]string {
	var out map[string]string
	for k, v := range all {
		if keep(k) {
			if out == nil {
				out = map[string]string{}
			}
			out[k] = v
		}
	}
	return out
}

// Ended reports whether the pod has ended: its launcher does not run and never will
// again. Other containers may still run.
func Ended(p *corev1.Pod) bool {
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return true
	}
	s := Compute(p)
	return s != nil && s.State.Terminated != nil
}

// Compute is the state of the launcher's container, or nil if there is none yet.
func Compute(p *corev1.Pod) *corev1.ContainerStatus {
	i := slices.IndexFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == vmi.ComputeContainer })
	if i < 0 {
		return nil
	}
	return &p.Status.ContainerStatuses[i]
}

// MovedAway reports whether the launcher of the pod has ended and says that its guest runs in
// another pod.
func MovedAway(p *corev1.Pod) bool {
	c := Compute(p)
	if c == nil || c.State.Terminated == nil || c.State.Terminated.ExitCode != 0 {
		return false
	}
	e, ok := protocol.ParseTermination(strings.TrimSpace(c.State.Terminated.Message))
	return ok && e.Reason == protocol.MovedAway
}
