package instance

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// rejected reports whether the pod ended before anything in it was started: its
// node refused it, because a device was not offered at the moment, or another pod
// was faster, or the node was about to stop. The guest has not run. A kubelet that was restarted
// says of a container that it has not made that it does not find it.
func rejected(p *corev1.Pod) bool {
	if p.Status.Phase != corev1.PodFailed {
		return false
	}
	return !slices.ContainsFunc(slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses), func(s corev1.ContainerStatus) bool {
		t := s.State.Terminated
		return s.State.Running != nil || t != nil && t.Reason != notFound || s.LastTerminationState.Terminated != nil
	})
}

// again makes room for another pod. The phase goes back to Pending first: there,
// and only there, a pod that does not exist is created.
func again(o Observed) scheduler.Plan {
	p := o.Pods.Active
	f := endOf(p).Finding
	if p.Status.Reason == notAdmitted {
		f = vmi.Finding{Reason: notAdmitted, Message: p.Status.Message}
		if !o.Node.HandlerDown.IsZero() {
			f.Message = fmt.Sprintf("virt-handler, which offers the devices of VMIs, is not ready on node %s: %s", p.Spec.NodeName, f.Message)
		}
	}
	if f.Message == "" {
		f.Message = "node " + p.Spec.NodeName + " refused the pod"
	}
	if plan := pending(o, f); len(plan.Actions) > 0 {
		plan.Recheck = leastRetry
		return plan
	}
	if p.DeletionTimestamp != nil {
		return scheduler.Plan{}
	}
	if left := retryDue(o).Sub(o.Now); left > 0 {
		return scheduler.Plan{Recheck: left}
	}
	return scheduler.Plan{Actions: []scheduler.Action{scheduler.DeletePod{Name: p.Name, UID: p.UID}}}
}

// retryDue is when the pod may be replaced: after a time that grows with the age
// of the VMI, so that nothing needs to be counted.
func retryDue(o Observed) time.Time {
	created := o.Pods.Active.CreationTimestamp.Time
	age := created.Sub(o.VMI.CreationTimestamp.Time)
	return created.Add(min(max(age/2, leastRetry), mostRetry))
}
