package instance_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// situations is every machine with every pod that this file knows of.
func situations() map[string]instance.Observed {
	phases := []vmi.Phase{"", vmi.Pending, vmi.Scheduling, vmi.Scheduled, vmi.Running, vmi.Succeeded, vmi.Failed, vmi.Unknown}
	machines := map[string][]vmitest.Option{
		"plain": nil, "deleted": {deleted}, "bare": {bare}, "deleted long ago": {deleted, long}, "deleted, bare": {deleted, bare},
		"invalid":     {invalid},
		"said before": {condition(vmi.ConditionSynchronized, "ErrImagePull", "x"), condition(vmi.ConditionPodScheduled, "Unschedulable", "x")},
	}
	pods := map[string]*corev1.Pod{
		"none": nil, "new": launcher(), "bound": launcher(bound), "unschedulable": launcher(unschedulable), "running": launcher(running),
		"leaving": launcher(running, leaving), "stuck": launcher(bound, waiting("ErrImagePull", "x")), "back": launcher(bound, waiting("ImagePullBackOff", "y")),
		"succeeded": launcher(exited(0, time.Hour, "")), "failed": launcher(exited(1, time.Hour, "Crashed: x")), "just failed": launcher(exited(1, 0, "")),
		"refused": launcher(refused), "refused long ago": launcher(refused, old), "refused, leaving": launcher(refused, old, leaving),
		"strange": launcher(strange), "strange, running": launcher(strange, running), "other": launcher(other), "other, running": launcher(other, running),
	}
	refusals := map[string]*scheduler.Finding{"accepted": nil, "refused": {Reason: "FailedCreate", Message: "quota"}}
	out := map[string]instance.Observed{}
	for _, p := range phases {
		for m, options := range machines {
			for n, q := range pods {
				for r, f := range refusals {
					o := instance.Observed{VMI: machine(p, options...), Pod: q.DeepCopy(), Config: config, Refusal: f, Now: now}
					out[fmt.Sprintf("%q %s, pod %s, %s", p, m, n, r)] = o
				}
			}
		}
	}
	return out
}

// apply is what the world looks like when the plan was carried out and its
// result observed. It returns false if the machine is gone.
func apply(o *instance.Observed, p scheduler.Plan) bool {
	o.VMI = o.VMI.DeepCopy()
	for _, a := range p.Actions {
		switch a := a.(type) {
		case scheduler.AddFinalizer:
			o.VMI.Finalizers = append(o.VMI.Finalizers, vmi.Finalizer)
		case scheduler.RemoveFinalizer:
			o.VMI.Finalizers = slices.DeleteFunc(o.VMI.Finalizers, func(f string) bool { return f == vmi.Finalizer })
		case scheduler.CreatePod:
			o.Pod = a.Pod
		case scheduler.DeletePod:
			o.Pod.DeletionTimestamp = &metav1.Time{Time: o.Now}
		case scheduler.WriteStatus:
			o.VMI.Status = a.Status
		}
	}
	return o.VMI.DeletionTimestamp == nil || len(o.VMI.Finalizers) > 0
}

func count[A scheduler.Action](p scheduler.Plan) int {
	n := 0
	for _, a := range p.Actions {
		if _, ok := a.(A); ok {
			n++
		}
	}
	return n
}

func TestEveryPlanIsSound(t *testing.T) {
	t.Parallel()
	for name, o := range situations() {
		before := o.VMI.DeepCopy()
		p := instance.Decide(o)
		require.Equal(t, before, o.VMI, "%s: the machine is not changed", name)
		require.False(t, count[scheduler.CreatePod](p) > 0 && count[scheduler.DeletePod](p) > 0, "%s: no plan creates and deletes: %v", name, p)
		require.LessOrEqual(t, count[scheduler.WriteStatus](p), 1, "%s: the status is written once: %v", name, p)
		if o.VMI.DeletionTimestamp != nil {
			require.Zero(t, count[scheduler.CreatePod](p), "%s: a deleted machine gets no pod: %v", name, p)
			require.Zero(t, count[scheduler.WriteStatus](p), "%s: a deleted machine's end is not written twice: %v", name, p)
		}
		if o.VMI.Status.Phase.Final() {
			require.Zero(t, count[scheduler.CreatePod](p)+count[scheduler.WriteStatus](p), "%s: the end is the end: %v", name, p)
		}
		if phase := o.VMI.Status.Phase; phase != "" && phase != vmi.Pending {
			require.Zero(t, count[scheduler.CreatePod](p), "%s: a machine runs once: %v", name, p)
		}
	}
}

func TestAPlanThatWasCarriedOutLeavesNothingToDo(t *testing.T) {
	t.Parallel()
	for name, o := range situations() {
		if !apply(&o, instance.Decide(o)) {
			continue
		}
		if o.Pod != nil && o.Pod.Status.Reason == "UnexpectedAdmissionError" {
			continue // is replaced in more than one step: see below
		}
		again := instance.Decide(o)
		require.Empty(t, again.Actions, name)
	}
}

// later lets the world go on by itself: pods that are being deleted go, and time
// passes.
func later(o *instance.Observed) {
	o.Now = o.Now.Add(time.Hour)
	if o.Pod != nil && o.Pod.DeletionTimestamp != nil {
		o.Pod = nil
	}
}

func TestADeletedMachineGoesEvenIfNoHandlerLives(t *testing.T) {
	t.Parallel()
	for name, o := range situations() {
		if o.VMI.DeletionTimestamp == nil || len(o.VMI.Finalizers) == 0 {
			continue
		}
		gone := false
		for range 4 {
			if gone = !apply(&o, instance.Decide(o)); gone {
				break
			}
			later(&o)
		}
		require.True(t, gone, name)
	}
}

func TestARefusedPodIsReplacedUntilItIsTaken(t *testing.T) {
	t.Parallel()
	for name, o := range situations() {
		if o.Pod == nil || o.Pod.Status.Reason != "UnexpectedAdmissionError" || o.VMI.DeletionTimestamp != nil || o.Refusal != nil {
			continue
		}
		if p := o.VMI.Status.Phase; p != vmi.Pending && p != vmi.Scheduling && p != "" || o.VMI.Spec.Domain.Memory == nil {
			continue
		}
		for range 4 {
			apply(&o, instance.Decide(o))
			later(&o)
		}
		require.NotNil(t, o.Pod, name)
		require.Empty(t, o.Pod.Status.Phase, "%s: the pod is a new one", name)
		require.Equal(t, vmi.Scheduling, o.VMI.Status.Phase, name)
		require.Nil(t, o.VMI.Status.Condition(vmi.ConditionSynchronized), name)
	}
}
