package migration

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// Times that a target may wait, from its creation, where no annotation says another.
const (
	unschedulableTime = 5 * time.Minute
	pendingTime       = 15 * time.Minute
)

// schedule is for a migration whose target is to run.
func schedule(o Observed) scheduler.Plan {
	t := o.Target
	switch {
	case t == nil:
		return fail(o, "the pod that the VMI was to move to does not exist any more")
	case over(o):
		return fail(o, targetDown)
	case t.DeletionTimestamp != nil:
		return fail(o, "the pod that the VMI was to move to is being deleted")
	case t.Spec.NodeName != "" && t.Spec.NodeName == o.VMI.Status.NodeName:
		return fail(o, "the pod that the VMI was to move to is on the node of the VMI")
	case runs(t):
		return handOver(o)
	case t.Status.Phase == corev1.PodRunning || t.Status.Phase == corev1.PodUnknown:
		return announce(o, scheduling(o))
	}
	unschedulable, says := unschedulable(t)
	limit, wait := "any reason", seconds(o.Migration, pendingAnnotation, pendingTime)
	if u := seconds(o.Migration, unschedulableAnnotation, unschedulableTime); unschedulable && u < wait {
		limit, wait = "a node", u
	}
	left := t.CreationTimestamp.Add(wait).Sub(o.Now)
	if left <= 0 {
		p := fail(o, fmt.Sprintf("the pod %s has waited for %s for %s", t.Name, limit, wait))
		deleted := scheduler.Emit{Finding: vmi.Finding{Reason: "SuccessfulDelete", Message: "Deleted migration target pod " + t.Name}}
		p.Actions = slices.Insert(p.Actions, 1, scheduler.Action(deleted))
		return p
	}
	p := scheduling(o)
	if unschedulable && !o.Warned {
		p.Actions = append(p.Actions, warn(TargetUnschedulable, fmt.Sprintf("no node fits the pod %s that the VMI is to move to: %s", t.Name, says)))
		if o.NoModel {
			p.Actions = append(p.Actions, say(o, true, NoSuitableNodes, "the guest has the processor of its node (host-model), and no other node has the labels "+
				strings.Join(launched.ProcessorLabels(t), ", ")))
		}
	}
	p.Recheck = left
	return announce(o, p)
}

// announce adds to the plan that the source announces its guest while a target on a node comes
// up. The pod of the target has the guest's MAC addresses on the networks that both are on, and
// its kernel sends from them, so that switches look for the guest there.
func announce(o Observed, p scheduler.Plan) scheduler.Plan {
	if asked := o.Calls.Announce; o.Target.Spec.NodeName != "" && bridged(&o.VMI.Spec) && !asked.Now {
		left := asked.rests(o.Now)
		if left <= 0 {
			p.Actions = append(p.Actions, scheduler.AnnounceGuest{Instance: o.VMI})
		}
		p.Recheck = soonest(p.Recheck, left)
	}
	return p
}

// bridged says that the guest is on a network besides that of pods, with a MAC address that
// others see.
func bridged(s *vmi.VirtualMachineInstanceSpec) bool {
	return slices.ContainsFunc(s.Networks, func(n vmi.Network) bool {
		return n.Multus != nil && slices.ContainsFunc(s.Domain.Devices.Interfaces, func(i vmi.Interface) bool {
			return i.Name == n.Name && i.Bridge != nil && i.State != vmi.InterfaceAbsent
		})
	})
}

// scheduling is the phase of a migration whose target does not run yet.
func scheduling(o Observed) scheduler.Plan {
	return write(o, func(s *vmi.VirtualMachineInstanceMigrationStatus, now metav1.Time) {
		reach(s, vmi.MigrationPhaseScheduling, now)
		withoutCondition(s, vmi.ConditionRejectedByResourceQuota)
	})
}

// runs says that the launcher of the target runs on a node, and that the containers beside
// it are ready.
func runs(t *corev1.Pod) bool {
	c := launched.Compute(t)
	if t.Spec.NodeName == "" || c == nil || c.State.Running == nil {
		return false
	}
	return !slices.ContainsFunc(t.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		if s.Name == vmi.ComputeContainer || s.Name == "istio-proxy" {
			return s.State.Running == nil
		}
		return !s.Ready
	})
}

// unschedulable says that no node fits the pod, and why.
func unschedulable(p *corev1.Pod) (bool, string) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return true, c.Message
		}
	}
	return false, ""
}

// ModelLabels are the labels that a node needs for the processor of a guest that has the one
// of its node, if it is to be found out whether another node has them. Nil: it is not.
func (o Observed) ModelLabels() map[string]string {
	if o.Target == nil || o.Warned || final(o) {
		return nil
	}
	if is, _ := unschedulable(o.Target); !is {
		return nil
	}
	var is bool
	out := map[string]string{}
	for k, v := range o.Target.Spec.NodeSelector {
		is = is || strings.HasPrefix(k, vmi.CPUMigrationLabelPrefix)
		if strings.HasPrefix(k, vmi.CPUMigrationLabelPrefix) || strings.HasPrefix(k, vmi.CPUFeatureLabelPrefix) {
			out[k] = v
		}
	}
	if !is {
		return nil
	}
	return out
}

// seconds is the time that the annotation says in whole seconds, or else the other.
func seconds(m *vmi.VirtualMachineInstanceMigration, annotation string, other time.Duration) time.Duration {
	n, err := strconv.ParseUint(m.Annotations[annotation], 10, 31)
	if err != nil {
		return other
	}
	return time.Duration(n) * time.Second
}

// handOver gives the VMI to the handler of the target's node, in one write after that of the
// label. Pods that earlier migrations have left are no pods of the VMI any more.
func handOver(o Observed) scheduler.Plan {
	from, t := source(o), o.Target
	if from == nil || o.VMI.Status.Phase != vmi.PhaseRunning || launched.Ended(from) || from.DeletionTimestamp != nil {
		p := scheduling(o) // the end of the VMI decides
		p.Recheck = retryTime
		return p
	}
	to := o.VMI.DeepCopy()
	if to.Labels == nil {
		to.Labels = map[string]string{}
	}
	to.Labels[vmi.MigrationTargetNodeLabel] = t.Spec.NodeName
	to.Status.ActivePods = map[types.UID]string{from.UID: o.VMI.Status.NodeName, t.UID: t.Spec.NodeName}
	to.Status.MigrationState = &vmi.MigrationState{
		MigrationUID: o.Migration.UID, SourceNode: o.VMI.Status.NodeName, SourcePod: from.Name,
		TargetNode: t.Spec.NodeName, TargetPod: t.Name, MigrationConfiguration: o.Settings.Configuration.DeepCopy(),
	}
	to.Status.MigrationState.SourcePersistentStatePVCName = launched.StateClaim(from)
	to.Status.MigrationState.TargetPersistentStatePVCName = launched.StateClaim(t)
	if o.Settings.Policy != "" {
		to.Status.MigrationState.MigrationPolicyName = new(o.Settings.Policy)
	}
	return scheduler.Plan{Actions: []scheduler.Action{
		scheduler.WriteInstance{From: o.VMI, To: to},
		scheduler.Emit{Finding: vmi.Finding{Reason: SuccessfulHandOver, Message: "Migration target pod is ready for preparation by virt-handler of node " + t.Spec.NodeName}},
		scheduler.AcceptMigration{Instance: to, Pod: t.UID},
	}}
}
