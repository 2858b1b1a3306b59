package instance

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// switchTime is how long after the end of the pod that a VMI leaves its guest may still begin
// to run at the target: a target destroys a guest of which it receives no more for 10 s.
const switchTime = 15 * time.Second

// relabelled makes the labels say where the VMI runs, where it moves to, and whether its
// launcher is outdated, in one write. A launcher whose pod has a startup probe lets it succeed when
// the label is gone by which the VMI moves: it is there while a pod is ready that the guest has left.
func relabelled(o Observed) []scheduler.Action {
	if isUnreadable(o) {
		return nil
	}
	awaited := false
	if p := o.Pods.Active; p != nil && unasked(p) {
		_, awaited = shut(o)
	}
	set, removed, annotations := map[string]string{}, []string(nil), []string(nil)
	if node := o.VMI.Status.NodeName; node != "" && o.VMI.Labels[vmi.NodeNameLabel] != node {
		set[vmi.NodeNameLabel] = node
		if _, ok := o.VMI.Annotations[vmi.EvictionSourceAnnotation]; ok {
			annotations = []string{vmi.EvictionSourceAnnotation} // it has left
		}
	}
	if to, ok := o.VMI.Labels[vmi.MigrationTargetNodeLabel]; ok && !awaited && !movesTo(o, to) {
		removed = append(removed, vmi.MigrationTargetNodeLabel)
	}
	_, labelled := o.VMI.Labels[vmi.OutdatedLauncherLabel]
	switch is, known := launched.Outdated(o.VMI, o.Pods.Active, o.Config.ImageOf(o.VMI)); {
	case known && labelled && !is:
		removed = append(removed, vmi.OutdatedLauncherLabel)
	case known && !labelled && is:
		set[vmi.OutdatedLauncherLabel] = ""
	}
	switch {
	case len(set)+len(removed) == 0:
		return nil
	case len(annotations) > 0:
	case len(removed) == 0 && len(set) == 1:
		for k, v := range set {
			return []scheduler.Action{scheduler.SetLabel{Key: k, Value: v}}
		}
	case len(set) == 0 && len(removed) == 1:
		return []scheduler.Action{scheduler.RemoveLabel{Key: removed[0]}}
	}
	return []scheduler.Action{scheduler.ChangeLabels{Labels: set, Removed: removed, Annotations: annotations}}
}

// movesTo says that a migration moves the VMI to the node, or is about to: the label is
// written before the status.
func movesTo(o Observed, node string) bool {
	if m := o.VMI.Status.MigrationState; m != nil && !m.Completed && m.TargetNode == node {
		return true
	}
	return slices.ContainsFunc(o.Pods.Targets, func(p *corev1.Pod) bool {
		return p.Spec.NodeName == node && p.DeletionTimestamp == nil && !launched.Ended(p)
	})
}

// left takes the pods out of the status that a migration has left and that have ended, or do
// not exist any more. With the pod goes the image that the VMI ran in.
func left(o Observed) scheduler.Plan {
	m := o.VMI.Status.MigrationState
	if m == nil || !m.Completed {
		return scheduler.Plan{} // both are pods of the VMI
	}
	pods := maps.Clone(o.VMI.Status.ActivePods)
	for uid := range pods {
		i := slices.IndexFunc(others(o), func(p *corev1.Pod) bool { return p.UID == uid })
		if uid != o.Pods.Active.UID && (i < 0 || launched.Ended(others(o)[i])) {
			delete(pods, uid)
		}
	}
	if len(pods) == len(o.VMI.Status.ActivePods) {
		return scheduler.Plan{}
	}
	return write(o, func(s *vmi.VirtualMachineInstanceStatus, _ metav1.Time) {
		s.ActivePods, s.LauncherContainerImageVersion = pods, launched.RunsIn(o.VMI, o.Pods.Active)
	})
}

// others are the pods besides the active one.
func others(o Observed) []*corev1.Pod { return slices.Concat(o.Pods.Stray, o.Pods.Targets) }

// switches is how long the guest of a VMI whose active pod ended then may still begin to run
// at the target of a migration, whose handler reports it. 0: it does not.
func switches(o Observed, ended time.Time) time.Duration {
	m := o.VMI.Status.MigrationState
	if m == nil || m.Completed || m.StartTimestamp == nil || !leaving(o) {
		return 0
	}
	if !slices.ContainsFunc(o.Pods.Targets, func(p *corev1.Pod) bool { return p.Name == m.TargetPod && !launched.Ended(p) }) {
		return 0
	}
	return remaining(o, ended, switchTime)
}

// shut closes the readiness gates of the pods that the VMI does not run in. It reports
// whether one of them is ready still, so that the active one must not be: a Service would
// have both.
func shut(o Observed) (closed []scheduler.Action, ready bool) {
	for _, p := range others(o) {
		if !launched.MadeFor(p, o.VMI) || launched.Ended(p) || p.DeletionTimestamp != nil || !hasGate(p) {
			continue
		}
		if waits(o, p) {
			continue
		}
		if c := podCondition(p, gate); c != nil && c.Status == corev1.ConditionTrue {
			closed = append(closed, scheduler.SetPodCondition{Name: p.Name, UID: p.UID, Condition: corev1.PodCondition{
				Type: gate, Status: corev1.ConditionFalse, Reason: "Elsewhere", Message: "the guest runs in another pod", LastTransitionTime: metav1.NewTime(o.Now),
			}})
		}
		c := podReady(p)
		ready = ready || c != nil && c.Status == corev1.ConditionTrue
	}
	return closed, ready
}
