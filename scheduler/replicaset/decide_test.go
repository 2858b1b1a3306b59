package replicaset_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/replicaset"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// world is an API server with one set and its namespace.
type world struct {
	t       *testing.T
	set     *vmi.VirtualMachineInstanceReplicaSet
	vmis    []*vmi.VirtualMachineInstance
	now     time.Time
	written time.Time
	refusal *vmi.Finding
	uids    int

	created, deleted, statuses int
}

func newWorld(t *testing.T, n int32) *world {
	s := vmitest.NewReplicaSet(n, vmitest.WithLabel("app", "web"))
	s.Namespace, s.Name, s.UID = "ns", "web", "set-uid"
	s.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	return &world{t: t, set: s, now: time.Unix(1_700_000_000, 0)}
}

func (w *world) observe() replicaset.Observed {
	o := replicaset.Observed{Set: w.set.DeepCopy(), Refusal: w.refusal, Now: w.now, Written: w.written}
	for _, v := range w.vmis {
		o.Instances = append(o.Instances, v.DeepCopy())
	}
	return o
}

// act does at most so many of the actions that were decided on.
func (w *world) act(p scheduler.Plan, most int) {
	for i, a := range p.Actions {
		if i == most {
			return
		}
		switch a := a.(type) {
		case scheduler.CreateInstance:
			if w.find(a.Instance.Name) != nil {
				continue // it is controlled already
			}
			w.uids++
			v := a.Instance.DeepCopy()
			v.UID, v.CreationTimestamp = types.UID(fmt.Sprint("uid-", w.uids)), metav1.NewTime(w.now)
			w.vmis = append(w.vmis, v)
			w.created++
		case scheduler.DeleteInstance:
			if v := w.find(a.Instance.Name); v != nil && v.UID == a.Instance.UID && v.DeletionTimestamp == nil {
				v.DeletionTimestamp = &metav1.Time{Time: w.now}
				w.deleted++
			}
		case scheduler.AdoptInstance:
			v := w.find(a.Instance.Name)
			if v == nil || v.UID != a.Instance.UID || len(v.OwnerReferences) > 0 {
				return // the API server refuses it
			}
			v.OwnerReferences = append(v.OwnerReferences, *metav1.NewControllerRef(w.set, vmi.VirtualMachineInstanceReplicaSets.GroupVersionKind))
		case scheduler.ReleaseInstance:
			v := w.find(a.Instance.Name)
			if v == nil || v.UID != a.Instance.UID {
				return
			}
			v.OwnerReferences = nil
		case scheduler.WriteStatus[*vmi.VirtualMachineInstanceReplicaSet]:
			w.set.Status = *a.Object.Status.DeepCopy()
			w.written = w.now
			w.statuses++
		case scheduler.Emit:
		default:
			w.t.Fatalf("action %T", a)
		}
	}
}

func (w *world) find(name string) *vmi.VirtualMachineInstance {
	for _, v := range w.vmis {
		if v.Name == name {
			return v
		}
	}
	return nil
}

// settle decides until there is nothing to do at this time.
func (w *world) settle() {
	w.t.Helper()
	for range 30 {
		p := replicaset.Decide(w.observe())
		if len(p.Actions) == 0 {
			return
		}
		w.act(p, len(p.Actions))
	}
	w.t.Fatal("does not settle")
}

// gone removes what is being deleted.
func (w *world) gone() {
	w.vmis = slices.DeleteFunc(w.vmis, func(v *vmi.VirtualMachineInstance) bool { return v.DeletionTimestamp != nil })
}

func (w *world) phase(v *vmi.VirtualMachineInstance, p vmi.Phase) {
	v.Status.SetPhase(p, metav1.NewTime(w.now))
	c := vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Reason: vmi.ReasonGuestNotRunning}
	if p == vmi.Running {
		c.Status = corev1.ConditionTrue
	}
	v.Status.SetCondition(c, metav1.NewTime(w.now))
}

func (w *world) run() {
	for _, v := range w.vmis {
		if v.DeletionTimestamp == nil && !v.Status.Phase.Final() {
			w.phase(v, vmi.Running)
		}
	}
	w.settle()
}

func TestASetIsScaled(t *testing.T) {
	w := newWorld(t, 10)
	w.settle()
	w.run()
	require.Len(t, w.vmis, 10)
	require.Equal(t, int32(10), w.set.Status.ReadyReplicas)
	require.Equal(t, "app=web", w.set.Status.LabelSelector)
	require.LessOrEqual(t, w.statuses, 3)

	late := w.vmis[4]
	w.phase(late, vmi.Scheduled) // it is not ready
	w.now = w.now.Add(time.Minute)
	w.set.Spec.Replicas = new(int32(9))
	w.settle()
	require.NotNil(t, late.DeletionTimestamp, "one that is not ready goes first")
	w.gone()
	w.set.Spec.Replicas = new(int32(12))
	w.settle()
	w.run()
	require.Len(t, w.vmis, 12)
	w.set.Spec.Replicas = new(int32(3))
	w.settle()
	w.gone()
	require.Len(t, w.vmis, 3)
	for _, v := range w.vmis {
		require.Less(t, v.CreationTimestamp.Time, w.now, "the youngest go first")
	}
	w.set.Spec.Replicas = new(int32(0))
	w.settle()
	w.gone()
	require.Empty(t, w.vmis)
	require.Equal(t, int32(0), w.set.Status.Replicas)
}

func TestManyAreMadeInBursts(t *testing.T) {
	w := newWorld(t, 120)
	p := replicaset.Decide(w.observe())
	w.act(p, len(p.Actions))
	require.Len(t, w.vmis, replicaset.Burst)
	w.settle()
	require.Len(t, w.vmis, 120)
	require.Equal(t, 120, w.created)
}

func TestAnOldCacheMakesNoVMITwice(t *testing.T) {
	w := newWorld(t, 10)
	old := w.observe()
	for range 3 {
		p := replicaset.Decide(old)
		w.act(p, len(p.Actions))
	}
	require.Len(t, w.vmis, 10)
}

func TestWhatEndedIsReplaced(t *testing.T) {
	w := newWorld(t, 2)
	w.settle()
	w.run()
	w.phase(w.vmis[0], vmi.Succeeded)
	w.settle()
	w.gone()
	require.Len(t, w.vmis, 2)
	require.Equal(t, 3, w.created)
	w.set.Spec.Paused = true
	w.phase(w.vmis[0], vmi.Failed)
	w.settle()
	w.gone()
	require.Len(t, w.vmis, 2, "a paused set does nothing")
	require.NotNil(t, w.set.Status.Condition(vmi.ConditionReplicaPaused))
}

func TestABrokenTemplateIsTriedLaterAndLater(t *testing.T) {
	w := newWorld(t, 5)
	for range 3600 { // an hour
		w.settle()
		for _, v := range w.vmis {
			if !v.Status.Phase.Final() && v.DeletionTimestamp == nil {
				w.phase(v, vmi.Failed)
			}
		}
		w.settle()
		w.gone()
		w.now = w.now.Add(time.Second)
	}
	require.LessOrEqual(t, w.created, 5*17, "10 s, 40 s, 90 s … 300 s")
	require.GreaterOrEqual(t, w.created, 5*10)
	require.Equal(t, replicaset.FailedStart, w.set.Status.Condition(vmi.ConditionReplicaFailure).Reason)
	w.now = w.now.Add(10 * time.Minute)
	w.settle()
	w.gone()
	w.run()
	require.Nil(t, w.set.Status.Condition(vmi.ConditionReplicaFailure))
	require.Equal(t, int32(5), w.set.Status.ReadyReplicas)
}

func TestMembersFollowTheSelector(t *testing.T) {
	w := newWorld(t, 2)
	stranger := vmitest.New(vmitest.WithName("orphan"), vmitest.WithLabel("app", "web"))
	stranger.UID, stranger.Namespace = "stranger", "ns"
	w.vmis = append(w.vmis, stranger)
	w.settle()
	require.Len(t, w.vmis, 2)
	require.True(t, metav1.IsControlledBy(stranger, w.set))
	stranger.Labels = nil
	w.settle()
	require.Empty(t, stranger.OwnerReferences)
	require.Len(t, w.vmis, 3, "another takes its place")
	stranger.Labels = map[string]string{"app": "web"}
	stranger.OwnerReferences = []metav1.OwnerReference{{APIVersion: "x/v1", Kind: "X", Name: "x", UID: "x", Controller: new(true)}}
	w.settle()
	require.Nil(t, stranger.DeletionTimestamp, "what others control is not touched")
}

// Whatever happens, and wherever it is killed, the set comes to have its number.
func TestConvergesFromAnywhere(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		w := newWorld(t, int32(r.IntN(6)))
		var old []replicaset.Observed
		for range 60 {
			w.disturb(r)
			old = append(old, w.observe())
			o := old[max(0, len(old)-1-r.IntN(3))] // of a cache that is behind
			o.Set = w.set.DeepCopy()
			w.act(replicaset.Decide(o), r.IntN(5))
		}
		w.refusal = nil
		for range 10 {
			w.now = w.now.Add(10 * time.Minute)
			w.settle()
			w.gone()
			w.run()
		}
		var alive int32
		for _, v := range w.vmis {
			if metav1.IsControlledBy(v, w.set) && v.DeletionTimestamp == nil {
				require.False(t, v.Status.Phase.Final(), "seed %d", seed)
				alive++
			}
		}
		require.Equal(t, w.set.Spec.Wanted(), alive, "seed %d", seed)
		require.Equal(t, alive, w.set.Status.ReadyReplicas, "seed %d", seed)
	}
}

func (w *world) disturb(r *rand.Rand) {
	w.now = w.now.Add(time.Duration(r.IntN(20)) * time.Second)
	if r.IntN(6) == 0 {
		w.set.Spec.Replicas = new(int32(r.IntN(6)))
	}
	w.refusal = nil
	if r.IntN(8) == 0 {
		w.refusal = &vmi.Finding{Reason: "FailedCreate", Message: "quota"}
	}
	if len(w.vmis) == 0 {
		return
	}
	v := w.vmis[r.IntN(len(w.vmis))]
	switch r.IntN(7) {
	case 0:
		w.gone()
	case 1:
		v.DeletionTimestamp = &metav1.Time{Time: w.now}
	case 2:
		v.Labels = map[string]string{"app": []string{"web", "other"}[r.IntN(2)]}
	default:
		if !v.Status.Phase.Final() {
			w.phase(v, []vmi.Phase{vmi.Scheduling, vmi.Running, vmi.Failed, vmi.Succeeded}[r.IntN(4)])
		}
	}
}
