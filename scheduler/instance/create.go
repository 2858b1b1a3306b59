package instance

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
)

// create creates the pod. The phase is written after it, if the pod does not run soon: a
// pod without the phase is found again by its name, but a phase without a pod says that
// the pod is gone.
func create(o Observed) scheduler.Plan {
	c := o.Config
	if f, ok := undefinedNetworks(o); ok {
		return waitForDefinitions(o, f)
	}
	c.Facts.Claims, c.Facts.Networks, c.Facts.State = o.Claims, o.Definitions, o.startState()
	p, err := pod.Render(o.VMI, c)
	if err != nil {
		return pending(o, vmi.Finding{Reason: InvalidSpec, Message: vmi.FaultText(err)})
	}
	if f, ok := missingClaims(o); ok {
		return pending(o, f)
	}
	if f, ok := claimsInUse(o); ok {
		plan := pending(o, f)
		if slices.ContainsFunc(o.Sharers, func(s Sharer) bool { return !s.Removed.IsZero() }) {
			plan.Recheck = nameDelay // no object says when it has ended
		}
		return plan
	}
	claim, fault := stateClaim(o)
	if fault != nil {
		return pending(o, *fault)
	}
	if len(o.Former) > 0 {
		return waitForFormer(o)
	}
	if o.Refusal != nil {
		return pending(o, settle(o, vmi.ConditionSynchronized, "", *o.Refusal))
	}
	var plan scheduler.Plan
	if !o.Unguarded && !slices.Contains(o.VMI.Finalizers, vmi.Finalizer) {
		plan.Actions = append(plan.Actions, scheduler.AddFinalizer{Finalizer: vmi.Finalizer})
	}
	plan.Actions = append(plan.Actions, claim...)
	plan.Actions = append(plan.Actions,
		scheduler.CreatePod{Pod: p},
		scheduler.Emit{Finding: vmi.Finding{Reason: "SuccessfulCreate", Message: "Created virtual machine pod " + p.Name}})
	if left := starts(o, o.Now); left > 0 {
		plan.Recheck = left
		return plan
	}
	plan.Actions = append(plan.Actions, scheduling(o, nil).Actions...)
	return plan
}

// taken waits until the pod that has the name is gone.
func taken(o Observed) scheduler.Plan {
	p := pending(o, PodNameInUse(o.Pods.Active.Name))
	p.Recheck = nameDelay
	return p
}

// PodNameInUse is the finding that a pod which is not the VMI's has the name.
func PodNameInUse(name string) vmi.Finding {
	return vmi.Finding{
		Reason:  PodNameTaken,
		Message: fmt.Sprintf("pod %s does not belong to this VMI, which needs a pod of this name; delete it", name),
	}
}

// pending says why there is no pod, once.
func pending(o Observed, f vmi.Finding) scheduler.Plan {
	return write(o, func(s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
		s.SetPhase(vmi.PhasePending, now)
		s.RemoveCondition(vmi.ConditionPodScheduled)
		s.SetCondition(notSynchronized(f), now)
		s.SetCondition(notReady(vmi.ReasonPodNotExists, "the VMI has no pod"), now)
	}, transition(o, vmi.ConditionSynchronized, f)...)
}

func notSynchronized(f vmi.Finding) vmi.Condition {
	return vmi.Condition{Type: vmi.ConditionSynchronized, Status: corev1.ConditionFalse, Reason: f.Reason, Message: f.Message}
}

func notReady(reason, message string) vmi.Condition {
	return vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Reason: reason, Message: message}
}

// transition is the warning that goes with a condition, if its reason is new.
func transition(o Observed, t vmi.ConditionType, f vmi.Finding) []scheduler.Emit {
	if c := o.VMI.Status.Condition(t); c != nil && c.Status == corev1.ConditionFalse && c.Reason == f.Reason {
		return nil
	}
	return []scheduler.Emit{{Warning: true, Finding: f}}
}
