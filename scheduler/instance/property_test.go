package instance_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// situations are all combinations of the VMIs, pods, nodes and refusals of this file.
func situations() map[string]instance.Observed {
	phases := []vmi.Phase{"", vmi.PhasePending, vmi.PhaseScheduling, vmi.PhaseScheduled, vmi.PhaseRunning, vmi.PhaseSucceeded, vmi.PhaseFailed, vmi.PhaseUnknown}
	instances := map[string][]vmitest.Option{
		"plain": nil, "deleted": {deleted}, "bare": {bare, labelledWith("")}, "deleted long ago": {deleted, long}, "deleted, bare": {deleted, bare},
		"deleted, kept": {deleted, kept}, "deleted long ago, kept": {deleted, long, kept},
		"invalid":             {invalid},
		"unreadable":          {unreadable},
		"unreadable, deleted": {unreadable, deleted}, "unreadable, said before": {unreadable, condition(vmi.ConditionSynchronized, "UnreadableSpec", "x")},
		"removed before":           {unknown("PodRemoved", "x")},
		"removed before, deleted":  {deleted, unknown("PodRemoved", "x")},
		"unresponsive, uncertain":  {unknown("LauncherUnresponsive", "x")},
		"unresponsive and deleted": {deleted, unknown("LauncherUnresponsive", "x")},
		"not ready before":         {condition(vmi.ConditionReady, "NodeNotReady", "x")},
		"copied before":            {condition(vmi.ConditionReady, "ContainersNotReady", "x")},
		"said before":              {condition(vmi.ConditionSynchronized, "ErrImagePull", "x"), condition(vmi.ConditionPodScheduled, "Unschedulable", "x")},
	}
	pods := map[string]*corev1.Pod{
		"silent": launcher(bound), "evicted": launcher(exited(137, time.Minute, ""), evicted), "of a node that restarted": launcher(exited(255, 0, ""), lostContainer),
		"evicted by the API": launcher(running, leaving, drained), "of no scheduler": launcher(old, otherScheduler),
		"none": nil, "new": launcher(), "bound": launcher(bound), "unschedulable": launcher(unschedulable), "running": launcher(running),
		"leaving": launcher(running, leaving), "not ready": launcher(running, notReady), "stuck": launcher(bound, waiting("ErrImagePull", "x")), "back": launcher(bound, waiting("ImagePullBackOff", "y")),
		"succeeded": launcher(exited(0, time.Hour, "")), "failed": launcher(exited(1, time.Hour, "Crashed: x")), "just failed": launcher(exited(1, 0, "")),
		"refused": launcher(refused), "refused long ago": launcher(refused, old), "refused, leaving": launcher(refused, old, leaving),
		"orphaned": launcher(strange), "orphaned, running": launcher(strange, running),
		"strange": launcher(strange, unlabelled), "strange, running": launcher(strange, unlabelled, running), "other": launcher(other), "other, running": launcher(other, running),
	}
	refusals := map[string]*vmi.Finding{"accepted": nil, "refused": {Reason: "FailedCreate", Message: "quota"}}
	nodes := map[string]func(*instance.Node){
		"node ready":     func(*instance.Node) {},
		"node unknown":   func(n *instance.Node) { n.Object = nodeIn(corev1.ConditionUnknown, 0) },
		"node not ready": func(n *instance.Node) { n.Object = nodeIn(corev1.ConditionFalse, time.Hour) },
		"node settles":   func(n *instance.Node) { n.Object = nodeIn(corev1.ConditionFalse, time.Second) },
		"node back": func(n *instance.Node) {
			n.Object, n.HandlerDown = nodeIn(corev1.ConditionTrue, time.Second), now.Add(-time.Hour)
		},
		"node deleted":     func(n *instance.Node) { n.Object = nil },
		"no handler":       func(n *instance.Node) { n.HandlerDown = now.Add(-time.Hour) },
		"handler restarts": func(n *instance.Node) { n.HandlerDown = now },
	}
	out := map[string]instance.Observed{}
	for _, p := range phases {
		for m, options := range instances {
			for n, q := range pods {
				for r, f := range refusals {
					if q != nil && f != nil {
						continue // a pod is refused where there is none
					}
					for w, change := range nodes {
						o := observe(stored(p, options...), q.DeepCopy())
						if o.Node.Name == "" && w != "node ready" {
							continue
						}
						o.Refusal = f
						change(&o.Node)
						if n == "silent" && !o.VMI.Status.Phase.Final() && w != "node unknown" {
							o.Silence = silence(10*time.Second, 0, event("FailedMount", `secret "x" not found`, 8*time.Second, 0))
						}
						out[fmt.Sprintf("%q %s, pod %s, %s, %s", p, m, n, r, w)] = o
					}
				}
			}
		}
	}
	return out
}

// apply is what is observed when the plan was carried out. It returns false if
// the VMI is gone.
func apply(o *instance.Observed, p scheduler.Plan) bool {
	o.VMI = o.VMI.DeepCopy()
	for _, a := range p.Actions {
		switch a := a.(type) {
		case scheduler.AddFinalizer:
			o.VMI.Finalizers = append(o.VMI.Finalizers, vmi.Finalizer)
		case scheduler.RemoveFinalizer:
			o.VMI.Finalizers = slices.DeleteFunc(o.VMI.Finalizers, func(f string) bool { return f == vmi.Finalizer })
		case scheduler.SetLabel:
			labels := maps.Clone(o.VMI.Labels)
			if labels == nil {
				labels = map[string]string{}
			}
			labels[a.Key] = a.Value
			o.VMI.Labels = labels
		case scheduler.CreatePod:
			o.Pods.Active = a.Pod.DeepCopy()
			o.Pods.Active.CreationTimestamp = metav1.NewTime(o.Now)
		case scheduler.DeletePod:
			for _, p := range all(*o) {
				if p.UID == a.UID {
					p.DeletionTimestamp = &metav1.Time{Time: o.Now}
				}
			}
		case scheduler.SetPodCondition:
			for _, p := range all(*o) {
				if p.UID == a.UID {
					p.Status.Conditions = append(slices.DeleteFunc(slices.Clone(p.Status.Conditions), func(c corev1.PodCondition) bool { return c.Type == a.Condition.Type }), a.Condition)
				}
			}
		case writeStatus:
			o.VMI.Status = a.Object.Status
		}
	}
	o.Pods = instance.PodsByRole(o.VMI, all(*o))
	o.Node.Name = o.Pods.NodeName(o.VMI)
	return o.VMI.DeletionTimestamp == nil || len(o.VMI.Finalizers) > 0
}

// all are the pods of the VMI.
func all(o instance.Observed) []*corev1.Pod {
	pods := slices.Concat(o.Pods.Targets, o.Pods.Stray)
	if o.Pods.Active != nil {
		pods = append(pods, o.Pods.Active)
	}
	return pods
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
		require.Equal(t, before, o.VMI, "%s: the VMI is not changed", name)
		require.False(t, count[scheduler.CreatePod](p) > 0 && count[scheduler.DeletePod](p) > 0, "%s: no plan creates and deletes: %v", name, p)
		require.LessOrEqual(t, count[writeStatus](p), 1, "%s: the status is written once: %v", name, p)
		if mayRun(o) && o.VMI.Status.Phase != vmi.PhaseSucceeded {
			// Succeeded is what the launcher reported, or its exit: the guest is off.
			require.Zero(t, count[scheduler.RemoveFinalizer](p), "%s: a VMI is not released while its guest may run: %v", name, p)
		}
		if mayRun(o) && o.VMI.DeletionTimestamp == nil && !o.VMI.Status.Phase.Final() && o.Pods.Active != nil && len(o.VMI.Finalizers) == 0 {
			require.Equal(t, 1, count[scheduler.AddFinalizer](p), "%s: a VMI with a pod has its finalizer or gets it: %v", name, p)
		}
		if o.VMI.DeletionTimestamp != nil {
			require.Zero(t, count[scheduler.CreatePod](p), "%s: a deleted VMI gets no pod: %v", name, p)
			for _, a := range p.Actions {
				if w, ok := a.(writeStatus); ok {
					require.True(t, o.VMI.Status.Phase == w.Object.Status.Phase || len(o.VMI.Finalizers) > 1, "%s: the end of a deleted VMI is written only if others keep it: %v", name, p)
				}
			}
		}
		if o.VMI.Status.Phase.Final() {
			require.Zero(t, count[scheduler.CreatePod](p), "%s: a VMI that has ended gets no pod: %v", name, p)
			for _, a := range p.Actions {
				if w, ok := a.(writeStatus); ok {
					require.Equal(t, vmi.PhaseFailed, o.VMI.Status.Phase, "%s: only why it failed is written: %v", name, p)
					require.Equal(t, vmi.PhaseFailed, w.Object.Status.Phase, "%s: a final phase stays: %v", name, p)
				}
			}
		}
		if vmi.Unreadable(o.VMI) != nil {
			require.Zero(t, count[scheduler.CreatePod](p), "%s: no pod is made of a spec that is not known: %v", name, p)
			for _, a := range p.Actions {
				if w, ok := a.(writeStatus); ok && w.Object.Status.Phase == vmi.PhaseScheduled {
					require.Equal(t, vmi.PhaseScheduled, o.VMI.Status.Phase, "%s: it is not handed over: %v", name, p)
				}
			}
			if o.VMI.DeletionTimestamp == nil && !o.VMI.Status.Phase.Final() && o.Pods.Active != nil && o.Pods.Active.Status.Phase == corev1.PodRunning {
				require.Zero(t, count[scheduler.DeletePod](p), "%s: a guest that runs is left alone: %v", name, p)
			}
		}
		if phase := o.VMI.Status.Phase; phase != "" && phase != vmi.PhasePending {
			require.Zero(t, count[scheduler.CreatePod](p), "%s: a VMI runs once: %v", name, p)
		}
	}
}

func TestAPlanThatWasCarriedOutLeavesNothingToDo(t *testing.T) {
	t.Parallel()
	for name, o := range situations() {
		if !apply(&o, instance.Decide(o)) {
			continue
		}
		if o.Pods.Active != nil && o.Pods.Active.Status.Reason == "UnexpectedAdmissionError" {
			continue // is replaced in more than one step: see below
		}
		again := instance.Decide(o)
		require.Empty(t, again.Actions, name)
	}
}

// later is an hour later: pods that are being deleted are gone.
func later(o *instance.Observed) {
	o.Now = o.Now.Add(time.Hour)
	o.Pods = instance.PodsByRole(o.VMI, slices.DeleteFunc(all(*o), func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil }))
}

// mayRun reports whether the guest of a pod that was made for the VMI may run. One that was
// handed over to a node may run there also when its pod was removed, until the node is
// fenced or its handler has reported the end.
func mayRun(o instance.Observed) bool {
	if s := o.VMI.Status; o.Pods.Active == nil && (s.Phase == vmi.PhaseScheduled || s.Phase == vmi.PhaseRunning || s.Uncertain()) && !o.Node.Fenced() {
		return true
	}
	for _, p := range all(o) {
		_, active := o.VMI.Status.ActivePods[p.UID]
		ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		if (active || launched.Owned(p, o.VMI) || p.Name == pod.Name(o.VMI) && launched.MadeFor(p, o.VMI)) && !ended && !o.Node.Fenced() {
			return true
		}
	}
	return false
}

func TestNoPodIsMadeWhileAnotherGuestOfTheNameMayRun(t *testing.T) {
	t.Parallel()
	former := launcher(running, func(p *corev1.Pod) {
		p.UID, p.Labels[vmi.CreatedByLabel], p.Spec.NodeName = "former-uid", "another-vmi", "n1"
	})
	former.OwnerReferences[0].UID = "another-vmi"
	waits := 0
	for name, o := range situations() {
		if o.Pods.Active != nil || o.Node.Name != "" {
			continue
		}
		o.Former = launched.Former(o.VMI, []*corev1.Pod{former})
		require.Len(t, o.Former, 1, name)
		for range 3 {
			p := instance.Decide(o)
			require.Zero(t, count[scheduler.CreatePod](p), name)
			if !apply(&o, p) {
				break
			}
			if c := o.VMI.Status.Condition(vmi.ConditionSynchronized); c != nil && c.Reason == instance.PreviousPodExists {
				waits++
				require.Contains(t, c.Message, "node n1 does not respond, it starts when the node comes back", name)
				require.Contains(t, c.Message, "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", name)
				require.NotZero(t, instance.Decide(o).Recheck+p.Recheck, "%s: it is decided on again", name)
			}
			later(&o)
		}
	}
	require.NotZero(t, waits)
}

func TestTheFormerPodsOfAName(t *testing.T) {
	t.Parallel()
	v := stored("")
	earlier := func(change ...func(*corev1.Pod)) *corev1.Pod {
		p := launcher(change...)
		p.Labels[vmi.CreatedByLabel] = "another-vmi"
		if len(p.OwnerReferences) > 0 {
			p.OwnerReferences[0].UID = "another-vmi"
		}
		return p
	}
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		want int
	}{
		"the VMI's own":                        {launcher(running), 0},
		"the VMI's own, orphaned":              {launcher(running, strange), 0},
		"one of an earlier VMI":                {earlier(running), 1},
		"one that is being deleted":            {earlier(running, leaving), 1},
		"an orphaned one":                      {earlier(running, strange), 1},
		"one that has ended":                   {earlier(exited(0, 0, "")), 0},
		"one of a VMI of another name":         {earlier(strange, func(p *corev1.Pod) { p.Annotations[vmi.DomainAnnotation] = "other" }), 0},
		"one that is no launcher":              {earlier(strange, func(p *corev1.Pod) { delete(p.Labels, vmi.AppLabel) }), 0},
		"one that was not started on any node": {earlier(), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Len(t, launched.Former(v, []*corev1.Pod{tt.pod}), tt.want)
		})
	}
}

func TestADeletedVMIIsReleasedWithoutAHandler(t *testing.T) {
	t.Parallel()
	for name, o := range situations() {
		if o.VMI.DeletionTimestamp == nil || len(o.VMI.Finalizers) == 0 {
			continue
		}
		gone := false
		for range 4 {
			apply(&o, instance.Decide(o))
			if o.Pods.Active == nil && o.VMI.Status.PodRemoved() && mayRun(o) {
				// That nothing of the pod is left, only the handler knows.
				o.VMI = o.VMI.DeepCopy()
				o.VMI.Status.End(vmi.PhaseFailed, "PodGone", vmi.Finding{Reason: "GuestNotRunning"}, metav1.NewTime(o.Now))
			}
			if gone = !slices.Contains(o.VMI.Finalizers, vmi.Finalizer); gone {
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
		if o.Pods.Active == nil || o.Pods.Active.Status.Reason != "UnexpectedAdmissionError" || o.VMI.DeletionTimestamp != nil || o.Refusal != nil {
			continue
		}
		if p := o.VMI.Status.Phase; p != vmi.PhasePending && p != vmi.PhaseScheduling && p != "" || o.VMI.Spec.Domain.Memory == nil {
			continue
		}
		for range 4 {
			apply(&o, instance.Decide(o))
			later(&o)
		}
		require.NotNil(t, o.Pods.Active, name)
		require.Empty(t, o.Pods.Active.Status.Phase, "%s: the pod is a new one", name)
		require.Equal(t, vmi.PhaseScheduling, o.VMI.Status.Phase, name)
		require.Nil(t, o.VMI.Status.Condition(vmi.ConditionSynchronized), name)
	}
}
