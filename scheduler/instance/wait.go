package instance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/network/cni"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// obstacle is what a pod waits for, and the condition that has it.
type obstacle struct {
	condition vmi.ConditionType
	vmi.Finding
}

// checks are the questions why a pod does not run yet. The first answer counts.
var checks = []func(Observed) (obstacle, bool){
	unschedulable,
	unprovisioned,
	schedulerSilent,
	containerStuck,
	unstartable,
}

// wait is for a pod that does not run yet.
func wait(o Observed) scheduler.Plan {
	for _, check := range checks {
		if f, ok := check(o); ok {
			return scheduling(o, &f)
		}
	}
	// The label is written while the pod is made, not when the VMI is to be handed over.
	label := labelled(o, o.Pods.Active.Spec.NodeName)
	if left := starts(o, o.Pods.Active.CreationTimestamp.Time); left > 0 {
		return scheduler.Plan{Actions: label, Recheck: left}
	}
	p := scheduling(o, nil)
	p.Actions = slices.Concat(label, p.Actions)
	return p
}

// startTime is how long after the creation of its pod a VMI of which nothing is written
// yet stays so: the pod of most runs by then, and Scheduled is written at once. Times of
// creation are in whole seconds.
const startTime = 2 * time.Second

// starts is how long nothing is written yet of a VMI whose pod was created then.
func starts(o Observed, created time.Time) time.Duration {
	if o.VMI.Status.Phase != vmi.PhaseUnset || len(o.VMI.Status.Conditions) > 0 {
		return 0
	}
	return max(0, created.Add(startTime).Sub(o.Now))
}

// scheduling is the status of a VMI whose pod does not run yet, because of the
// obstacle if there is one, or of its node. A condition whose cause is gone is
// removed.
func scheduling(o Observed, b *obstacle) scheduler.Plan {
	var events []scheduler.Emit
	if b != nil {
		events = transition(o, b.condition, b.Finding)
	}
	node, isNode := nodeNotReady(o)
	if isNode {
		events = append(events, nodeEvents(o, node)...)
	}
	p := write(o, func(s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
		s.SetPhase(vmi.PhaseScheduling, now)
		s.RuntimeUser = vmi.RuntimeUID
		if isNode {
			setNotReady(s, node, now)
		} else {
			s.SetCondition(notReady(vmi.ReasonGuestNotRunning, notYet(o)), now)
		}
		for _, t := range []vmi.ConditionType{vmi.ConditionPodScheduled, vmi.ConditionSynchronized} {
			if b == nil || b.condition != t {
				s.RemoveCondition(t)
				continue
			}
			c := notSynchronized(b.Finding)
			c.Type = t
			s.SetCondition(c, now)
		}
	}, events...)
	p.Recheck = soonest(nodeSettles(o), schedulerSettles(o), silenceSettles(o))
	return p
}

// notYet is why a pod does not run yet in which nothing is wrong.
func notYet(o Observed) string {
	const message = "the pod of the VMI does not run yet"
	if p := pulling(o); p != "" {
		return message + ": " + p
	}
	return message
}

// soonest is the shortest of the times that are not 0, or 0.
func soonest(all ...time.Duration) time.Duration {
	all = slices.DeleteFunc(all, func(d time.Duration) bool { return d <= 0 })
	if len(all) == 0 {
		return 0
	}
	return slices.Min(all)
}

// handOver gives the VMI to the handler of its node, in one write.
func handOver(o Observed) scheduler.Plan {
	active := o.Pods.Active
	given := *o.VMI
	given.Status.Phase = vmi.PhaseScheduled
	after := o
	after.VMI = &given
	f, ok := firstOf(after, slices.Concat(nodeChecks, podChecks)...)
	if !ok {
		f = vmi.Finding{Reason: vmi.ReasonGuestNotRunning, Message: "the guest does not run yet"}
	}
	p := write(o, func(s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
		if s.Phase == vmi.PhaseUnset {
			s.SetPhase(vmi.PhaseScheduling, active.CreationTimestamp)
		}
		s.SetPhase(vmi.PhaseScheduled, now)
		s.RuntimeUser = vmi.RuntimeUID
		s.NodeName = active.Spec.NodeName
		s.ActivePods = map[types.UID]string{active.UID: active.Spec.NodeName}
		s.LauncherContainerImageVersion = launched.Image(active)
		if c := active.Status.QOSClass; c != "" {
			s.QOSClass = new(c)
		}
		if m := launched.MemoryOverhead(active); m != nil {
			if s.Memory == nil {
				s.Memory = &vmi.MemoryStatus{}
			}
			s.Memory.MemoryOverhead = m
		}
		s.VolumeStatus = claimStatus(o)
		s.Interfaces = cni.Interfaces(o.VMI, active.Annotations[cni.StatusAnnotation])
		s.RemoveCondition(vmi.ConditionPodScheduled)
		s.RemoveCondition(vmi.ConditionSynchronized)
		s.SetCondition(notReady(f.Reason, f.Message), now)
		migratable(o, s, now)
	}, nodeEvents(o, f)...)
	p.Actions = slices.Concat(labelled(o, active.Spec.NodeName), p.Actions, opened(o))
	p.Recheck = settles(o)
	return p
}

// unschedulable: no node fits, as the cluster's scheduler says.
func unschedulable(o Observed) (obstacle, bool) {
	for _, c := range o.Pods.Active.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason != corev1.PodReasonSchedulingGated {
			return obstacle{vmi.ConditionPodScheduled, settle(o, vmi.ConditionPodScheduled, "", vmi.Finding{Reason: c.Reason, Message: c.Message + needs(o.Pods.Active, c.Reason)})}, true
		}
	}
	return obstacle{}, false
}

// Times that a scheduler may take before the VMI says that it does nothing. The
// cluster's own may have much to do.
const (
	schedulerTime      = 30 * time.Second
	otherSchedulerTime = 3 * time.Second
)

// selectedNode is the annotation of a claim whose pod a scheduler has given a node. The
// scheduler reports nothing about the pod until the claim is bound.
const selectedNode = "volume.kubernetes.io/selected-node"

// unprovisioned: claims of the pod have their node, and no volume.
func unprovisioned(o Observed) (obstacle, bool) {
	if !unseen(o.Pods.Active) || schedulerSettles(o) > 0 {
		return obstacle{}, false
	}
	var waits []string
	for _, name := range ClaimNames(o.VMI) {
		if c := o.Claims[name]; c != nil && c.Status.Phase == corev1.ClaimPending && c.Annotations[selectedNode] != "" {
			waits = append(waits, name)
		}
	}
	if len(waits) == 0 {
		return obstacle{}, false
	}
	slices.Sort(waits)
	return obstacle{vmi.ConditionPodScheduled, vmi.Finding{Reason: ClaimNotProvisioned, Message: fmt.Sprintf(
		"no volume is provisioned yet for PersistentVolumeClaim %s: kubectl describe pvc shows why", strings.Join(slices.Compact(waits), ", "))}}, true
}

// schedulerSilent: no scheduler has looked at the pod, most often because there is
// none of that name.
func schedulerSilent(o Observed) (obstacle, bool) {
	if !unseen(o.Pods.Active) || schedulerSettles(o) > 0 {
		return obstacle{}, false
	}
	return obstacle{vmi.ConditionPodScheduled, vmi.Finding{Reason: SchedulerUnresponsive, Message: fmt.Sprintf(
		"scheduler %s has done nothing with the pod of the VMI: start it, or create the VMI with a schedulerName that runs in the cluster", schedulerOf(o.Pods.Active))}}, true
}

// schedulerSettles is how long the scheduler still has to look at the pod. 0: it has
// done so, or has had its time.
func schedulerSettles(o Observed) time.Duration {
	if o.Pods.Active == nil || !unseen(o.Pods.Active) {
		return 0
	}
	whole := otherSchedulerTime
	if schedulerOf(o.Pods.Active) == corev1.DefaultSchedulerName {
		whole = schedulerTime
	}
	return remaining(o, o.Pods.Active.CreationTimestamp.Time, whole)
}

// unseen reports whether no scheduler has reported anything about the pod.
func unseen(p *corev1.Pod) bool {
	return p.Spec.NodeName == "" && p.DeletionTimestamp == nil && !p.CreationTimestamp.IsZero() &&
		!slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
}

func schedulerOf(p *corev1.Pod) string {
	return cmp.Or(p.Spec.SchedulerName, corev1.DefaultSchedulerName)
}

// Reasons of a container that waits for an image.
const (
	errImagePull     = "ErrImagePull"
	imagePullBackOff = "ImagePullBackOff"
)

// containerStuck: a container cannot be started, most often because an image is
// missing.
func containerStuck(o Observed) (obstacle, bool) {
	for _, c := range containers(o.Pods.Active) {
		if w := c.State.Waiting; stuck(c) {
			return obstacle{vmi.ConditionSynchronized, settle(o, vmi.ConditionSynchronized, whose(o, w.Message+" "+c.Image), vmi.Finding{Reason: w.Reason, Message: w.Message})}, true
		}
	}
	return obstacle{}, false
}

// whose names the volumes whose image is in the text, as the beginning of a
// message, or the launcher if it is its image. Nothing is decided by it.
func whose(o Observed, text string) string {
	var names []string
	for _, v := range o.VMI.Spec.Volumes {
		if c := v.ContainerDisk; c != nil && mentions(text, c.Image) {
			names = append(names, v.Name)
		}
	}
	switch {
	case len(names) == 1:
		return fmt.Sprintf("volume %s: ", names[0])
	case len(names) > 1:
		return fmt.Sprintf("volumes %s: ", strings.Join(names, ", "))
	case mentions(text, o.Config.Image):
		return "virt-launcher image: "
	}
	return ""
}

// mentions reports whether the text has the name of the image, and not only one
// that begins or ends in the same way.
func mentions(text, image string) bool {
	for from := 0; image != ""; {
		i := strings.Index(text[from:], image)
		if i < 0 {
			return false
		}
		begin, end := from+i, from+i+len(image)
		if (begin == 0 || !partOfImage(text[begin-1])) && (end == len(text) || !partOfImage(text[end]) || ends(text[end:])) {
			return true
		}
		from = end
	}
	return false
}

// partOfImage reports whether the byte may be part of an image's reference.
func partOfImage(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || strings.IndexByte("-_./:@", b) >= 0
}

// ends reports whether the text goes on with punctuation and not with more of a name.
func ends(text string) bool {
	return strings.IndexByte(".:", text[0]) >= 0 && (len(text) == 1 || text[1] == ' ')
}

// needs names, for a pod that no node suits, the labels that it needs for the guest's
// processor: the scheduler says only that a selector does not match.
func needs(p *corev1.Pod, reason string) string {
	labels := launched.ProcessorLabels(p)
	if reason != corev1.PodReasonUnschedulable || len(labels) == 0 {
		return ""
	}
	return fmt.Sprintf(" The VMI's spec.domain.cpu needs a node with %s.", strings.Join(labels, ", "))
}
