package replicaset_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/testenv"
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
	o := replicaset.Observed{Set: w.set.DeepCopy(), Refusal: w.refusal, Now: w.now, StatusWritten: w.written}
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

// settle decides until there is nothing to do within a second.
func (w *world) settle() {
	w.t.Helper()
	for range 30 {
		p := replicaset.Decide(w.observe())
		switch {
		case len(p.Actions) > 0:
			w.act(p, len(p.Actions))
		case p.Recheck > 0 && p.Recheck <= time.Second:
			w.now = w.now.Add(p.Recheck)
		default:
			return
		}
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
	if p == vmi.PhaseRunning {
		c.Status = corev1.ConditionTrue
	}
	v.Status.SetCondition(c, metav1.NewTime(w.now))
}

func (w *world) run() {
	for _, v := range w.vmis {
		if v.DeletionTimestamp == nil && !v.Status.Phase.Final() {
			w.phase(v, vmi.PhaseRunning)
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
	w.phase(late, vmi.PhaseScheduled) // it is not ready
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
	require.Len(t, w.vmis, 50)
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
	w.phase(w.vmis[0], vmi.PhaseSucceeded)
	w.settle()
	w.gone()
	require.Len(t, w.vmis, 2)
	require.Equal(t, 3, w.created)
	w.set.Spec.Paused = true
	w.phase(w.vmis[0], vmi.PhaseFailed)
	w.settle()
	w.gone()
	require.Len(t, w.vmis, 2, "a paused set does nothing")
	require.NotNil(t, w.set.Status.Condition(vmi.ConditionReplicaPaused))
}

// hour lets an hour pass in which each VMI that is created does the same.
func (w *world) hour(do func(v *vmi.VirtualMachineInstance)) {
	for end := w.now.Add(time.Hour); w.now.Before(end); w.now = w.now.Add(3 * time.Second) {
		w.settle()
		for _, v := range w.vmis {
			if !v.Status.Phase.Final() && v.DeletionTimestamp == nil {
				do(v)
			}
		}
		w.settle()
		w.gone()
	}
}

func TestVMIsThatFailAreTriedLaterAndLater(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(w *world, v *vmi.VirtualMachineInstance)
		most int
	}{
		"a launcher that fails": {func(w *world, v *vmi.VirtualMachineInstance) { w.phase(v, vmi.PhaseFailed) }, 100 + 16},
		"a guest that runs for a second": {func(w *world, v *vmi.VirtualMachineInstance) {
			w.phase(v, vmi.PhaseRunning)
			w.now = w.now.Add(time.Second / 100)
			w.phase(v, vmi.PhaseSucceeded)
		}, 100 + 100 + 17},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 100)
			w.hour(func(v *vmi.VirtualMachineInstance) { tt.do(w, v) })
			require.LessOrEqual(t, w.created, tt.most, "100 at first, and then one after 10 s, 40 s, 90 s … 300 s")
			require.GreaterOrEqual(t, w.created, 100+10)
			require.Less(t, w.statuses, 4*17)
			c := w.set.Status.Condition(vmi.ConditionReplicaFailure)
			require.Equal(t, replicaset.FailedStart, c.Reason)
			require.Contains(t, c.Message, "delete it")

			// It is mended: one runs, then two, and so on.
			before := w.created
			w.now = w.now.Add(5 * time.Minute)
			w.settle()
			w.gone()
			require.Equal(t, before+1, w.created)
			for i := range 7 {
				w.run()
				w.gone()
				require.Equal(t, min(100, 1<<(i+1)), w.created-before)
			}
			w.run()
			require.Nil(t, w.set.Status.Condition(vmi.ConditionReplicaFailure))
			require.Equal(t, int32(100), w.set.Status.ReadyReplicas)
		})
	}
}

func TestOneThatFailsBesideThoseThatRunIsTriedLaterAndLater(t *testing.T) {
	w := newWorld(t, 3)
	w.settle()
	w.run()
	first := w.vmis[0]
	w.phase(first, vmi.PhaseFailed)
	w.settle()
	require.NotNil(t, first.DeletionTimestamp, "a guest that ran is replaced at once")
	w.gone()
	w.created = 0
	w.hour(func(v *vmi.VirtualMachineInstance) {
		if v.Status.Phase != vmi.PhaseRunning {
			w.phase(v, vmi.PhaseFailed)
		}
	})
	require.InDelta(t, 15, w.created, 2)
	require.Equal(t, int32(2), w.set.Status.ReadyReplicas)
}

func TestVMIsThatFailedGoFirst(t *testing.T) {
	w := newWorld(t, 4)
	w.settle()
	w.run()
	failed := w.vmis[2]
	failed.Status.PhaseTransitionTimestamps = nil
	w.phase(failed, vmi.PhaseFailed)
	w.settle()
	require.Nil(t, failed.DeletionTimestamp, "its status can be read")
	require.Equal(t, int32(3), w.set.Status.Replicas)
	w.set.Spec.Replicas = new(int32(3))
	w.settle()
	w.gone()
	require.Len(t, w.vmis, 3)
	require.NotContains(t, w.vmis, failed)
	require.Nil(t, w.set.Status.Condition(vmi.ConditionReplicaFailure))
}

func TestARefusedVMIIsReported(t *testing.T) {
	w := newWorld(t, 3)
	w.settle()
	w.run()
	w.set.Spec.Replicas = new(int32(5))
	w.refusal = &vmi.Finding{Reason: "FailedCreate", Message: "exceeded quota"}
	w.settle()
	require.Equal(t, "FailedCreate", w.set.Status.Condition(vmi.ConditionReplicaFailure).Reason)
	require.Equal(t, int32(3), w.set.Status.Replicas)
	w.set.Spec.Replicas = new(int32(2))
	w.settle()
	w.gone()
	require.Len(t, w.vmis, 2, "it is scaled down all the same")
	require.Nil(t, w.set.Status.Condition(vmi.ConditionReplicaFailure))
}

func TestASetThatWouldNotFindItsVMIsCreatesNone(t *testing.T) {
	for name, change := range map[string]func(s *vmi.VirtualMachineInstanceReplicaSetSpec){
		"no selector":                   func(s *vmi.VirtualMachineInstanceReplicaSetSpec) { s.Selector = nil },
		"a selector of everything":      func(s *vmi.VirtualMachineInstanceReplicaSetSpec) { s.Selector = &metav1.LabelSelector{} },
		"a selector of something else":  func(s *vmi.VirtualMachineInstanceReplicaSetSpec) { s.Selector.MatchLabels["app"] = "other" },
		"a selector with a wrong value": func(s *vmi.VirtualMachineInstanceReplicaSetSpec) { s.Selector.MatchLabels["app"] = "a b" },
		"no template":                   func(s *vmi.VirtualMachineInstanceReplicaSetSpec) { s.Template = nil },
		"a label that only Podvisor writes": func(s *vmi.VirtualMachineInstanceReplicaSetSpec) {
			s.Selector.MatchLabels, s.Template.ObjectMeta.Labels = map[string]string{vmi.NodeNameLabel: "n1"}, map[string]string{vmi.NodeNameLabel: "n1"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3)
			stranger := vmitest.New(vmitest.WithName("stranger"))
			w.vmis = append(w.vmis, stranger)
			change(&w.set.Spec)
			w.settle()
			require.Equal(t, []*vmi.VirtualMachineInstance{stranger}, w.vmis)
			require.Empty(t, stranger.OwnerReferences)
			c := w.set.Status.Condition(vmi.ConditionReplicaFailure)
			require.Equal(t, replicaset.InvalidTemplate, c.Reason)
			require.Regexp(t, "^spec.(selector|template)", c.Message)
		})
	}
}

func TestVMIsHaveTheTemplateWithoutWhatOnlyPodvisorWrites(t *testing.T) {
	w := newWorld(t, 1)
	w.set.Name = strings.Repeat("web.", 63)
	m := &w.set.Spec.Template.ObjectMeta
	m.Labels[vmi.NodeNameLabel], m.Labels[vmi.CreatedByLabel] = "n1", "x"
	m.Annotations = map[string]string{"note": "a", replicaset.FailuresAnnotation: "100"}
	w.settle()
	v := w.vmis[0]
	require.Equal(t, map[string]string{"app": "web", "set": "testvmi"}, v.Labels)
	require.NotEmpty(t, v.Annotations[replicaset.TemplateAnnotation])
	delete(v.Annotations, replicaset.TemplateAnnotation)
	require.Equal(t, map[string]string{"note": "a"}, v.Annotations)
	require.Regexp(t, `^web-web-[a-z0-9-]+-[a-z2-9]{6}$`, v.Name)
	require.LessOrEqual(t, len(v.Name), 63)
	require.Equal(t, v.Name, v.Hostname())
	require.Len(t, m.Labels, 4, "the template is as it was")

	w.set.Spec.Replicas = new(int32(2))
	w.settle()
	require.NotEqual(t, v.Hostname(), w.vmis[1].Hostname())
}

func TestANameThatIsTakenIsPassedOver(t *testing.T) {
	w := newWorld(t, 3)
	w.settle()
	w.run()
	for _, v := range w.vmis {
		v.OwnerReferences, v.Labels = nil, nil // they are another's now
	}
	w.settle()
	require.Len(t, w.vmis, 6)
	require.Equal(t, int32(3), w.set.Status.Replicas)
}

func TestAStatusOfCountsIsWrittenOnceASecond(t *testing.T) {
	w := newWorld(t, 100)
	w.settle()
	w.statuses = 0
	for i, v := range w.vmis { // 20 become ready in each second
		w.phase(v, vmi.PhaseRunning)
		w.now = w.now.Add(time.Second / 20)
		p := replicaset.Decide(w.observe())
		w.act(p, len(p.Actions))
		require.True(t, len(p.Actions) > 0 || p.Recheck > 0, "%d: what is not written now is written soon", i)
	}
	w.settle()
	require.Equal(t, int32(100), w.set.Status.ReadyReplicas)
	require.LessOrEqual(t, w.statuses, 7)
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
	for seed := range testenv.Seeds(200) {
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
			w.phase(v, []vmi.Phase{vmi.PhaseScheduling, vmi.PhaseRunning, vmi.PhaseFailed, vmi.PhaseSucceeded}[r.IntN(4)])
		}
	}
}
