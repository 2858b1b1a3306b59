package pool_test

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
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/scheduler/pool"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

func TestAPoolMakesItsVMsWithTheLowestOrdinalsThatAreFree(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.taken["web-1"] = true // as by a claim
	w.vms = append(w.vms, &vmi.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "web-2", UID: "other"}, Spec: vmitest.NewVM(vmi.RunHalted).Spec})
	w.settle()
	require.Equal(t, []string{"web-0", "web-3", "web-4"}, w.created)
	require.Len(t, w.revisions, 1)
	s := w.pool.Status
	require.Equal(t, []any{int32(3), int32(3), "app=web"}, []any{s.Replicas, s.ReadyReplicas, s.LabelSelector})
	require.Empty(t, s.Conditions)
	v := w.find("web-3")
	require.True(t, metav1.IsControlledBy(v, w.pool))
	require.Equal(t, "web", v.Labels["app"])
	require.Equal(t, w.revisions[0].Name, v.Labels[vmi.PoolRevisionLabel])
	require.LessOrEqual(t, len(w.revisions[0].Name), 63, "it is the value of a label")

	n := len(w.statuses)
	for range 5 {
		w.step()
	}
	require.Len(t, w.statuses, n, "a steady pool costs no write")

	w.find("web-3").DeletionTimestamp = &metav1.Time{Time: w.now} // by a user
	w.step()
	require.Equal(t, "web-5", w.created[3], "the name is in use until the object is gone")
}

func TestADetachedVMGoesOnAndAnotherTakesItsPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.settle()
	w.find("web-0").OwnerReferences = nil
	w.settle()
	require.Equal(t, []string{"web-0", "web-1", "web-2"}, w.names())
	require.Empty(t, w.deleted)
	require.Equal(t, int32(2), w.pool.Status.Replicas)
	w.template("65Mi")
	w.settle()
	require.NotContains(t, w.changed, "web-0")
}

func TestAPausedPoolChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.settle()
	w.pool.Spec.Paused, w.pool.Spec.Replicas = true, new(int32(5))
	w.template("65Mi")
	w.find("web-0").DeletionTimestamp = &metav1.Time{Time: w.now}
	w.settle()
	require.Len(t, w.created, 2)
	require.Empty(t, w.changed)
	require.Equal(t, pool.Paused, w.pool.Status.Condition(vmi.ConditionReplicaPaused).Reason)
	require.Equal(t, int32(1), w.pool.Status.Replicas)
	w.pool.Spec.Paused = false
	w.settle()
	require.Nil(t, w.pool.Status.Condition(vmi.ConditionReplicaPaused))
	require.Len(t, w.current(), 5)
}

func TestWhichVMsGoFirst(t *testing.T) {
	t.Parallel()
	policy := func(p vmpool.PoolSortPolicy) *vmpool.PoolScaleInStrategy {
		return &vmpool.PoolScaleInStrategy{Proactive: &vmpool.PoolProactiveScaleIn{SelectionPolicy: &vmpool.PoolSelectionPolicy{SortPolicy: &p}}}
	}
	selected := policy(vmpool.SortAscending)
	selected.Proactive.SelectionPolicy.Selectors = &vmpool.PoolSelectors{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"old": "yes"}}}
	for name, tt := range map[string]struct {
		strategy *vmpool.PoolScaleInStrategy
		change   func(*world)
		gone     []string
	}{
		"the lowest ordinals":                   {policy(vmpool.SortAscending), nil, []string{"web-0", "web-1"}},
		"the highest ordinals":                  {policy(vmpool.SortDescending), nil, []string{"web-4", "web-3"}},
		"the last made":                         {policy(vmpool.SortNewest), nil, []string{"web-1", "web-3"}},
		"the first made":                        {policy(vmpool.SortOldest), nil, []string{"web-4", "web-2"}},
		"by default in the order of their UIDs": {nil, nil, []string{"web-0", "web-1"}},
		"Random":                                {policy(vmpool.SortRandom), nil, []string{"web-0", "web-1"}},
		"those that are not ready before others": {policy(vmpool.SortAscending), func(w *world) {
			w.find("web-3").Status.Ready = false
		}, []string{"web-3", "web-0"}},
		"those that are selected before all": {selected, func(w *world) {
			w.find("web-2").Labels["old"] = "yes"
			w.find("web-3").Status.Ready = false
		}, []string{"web-2", "web-3"}},
		"none that migrates or is in a backup": {policy(vmpool.SortAscending), func(w *world) {
			w.vmis["web-0"].Status.MigrationState = &vmi.MigrationState{}
			w.find("web-1").Status.SnapshotInProgress = new("s")
			w.find("web-2").Status.RestoreInProgress = new("r")
		}, []string{"web-3", "web-4"}},
		"one that has migrated like others": {policy(vmpool.SortAscending), func(w *world) {
			w.vmis["web-0"].Status.MigrationState = &vmi.MigrationState{Completed: true}
		}, []string{"web-0", "web-1"}},
		"unmanaged: none": {&vmpool.PoolScaleInStrategy{Unmanaged: &vmpool.PoolUnmanaged{}}, nil, nil},
		"opportunistic: those that are off": {&vmpool.PoolScaleInStrategy{Opportunistic: &vmpool.PoolOpportunisticScaleIn{}}, func(w *world) {
			w.find("web-1").Spec.RunStrategy = new(vmi.RunHalted)
			delete(w.vmis, "web-1")
		}, []string{"web-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 5)
			w.settle()
			ages, uids := []int{2, 5, 1, 4, 0}, []types.UID{"b", "c", "e", "d", "f"}
			for i := range 5 {
				v := w.find(fmt.Sprint("web-", i))
				v.UID, v.CreationTimestamp = uids[i], metav1.NewTime(w.now.Add(time.Duration(ages[i])*time.Minute))
				w.vmis[v.Name].OwnerReferences[0].UID = v.UID
			}
			if tt.change != nil {
				tt.change(w)
			}
			w.pool.Spec.ScaleInStrategy, w.pool.Spec.Replicas = tt.strategy, new(int32(3))
			w.act(pool.Decide(w.observe()), -1)
			require.Equal(t, tt.gone, w.deleted)
		})
	}
}

// rolled gives the pool of a world another template, and is how many VMs were not ready at the
// same time until it has settled.
func (w *world) rolled(memory string) (most int) {
	w.template(memory)
	for range 200 {
		w.step()
		down := 0
		for _, v := range w.vms {
			if w.down(v) && v.Spec.Strategy() == vmi.RunAlways {
				down++
			}
		}
		most = max(most, down)
		if len(w.current()) == len(w.vms) && down == 0 {
			break
		}
	}
	w.settle()
	return most
}

func TestATemplateReachesTheVMsAsTheStrategySays(t *testing.T) {
	t.Parallel()
	first, last := vmpool.SortAscending, vmpool.SortDescending
	proactive := func(p *vmpool.PoolSortPolicy) *vmpool.PoolUpdateStrategy {
		return &vmpool.PoolUpdateStrategy{Proactive: &vmpool.PoolProactiveUpdate{SelectionPolicy: &vmpool.PoolSelectionPolicy{SortPolicy: p}}}
	}
	for name, tt := range map[string]struct {
		strategy        *vmpool.PoolUpdateStrategy
		max             *intstr.IntOrString
		most            int
		changed         int
		restarted       []string // in their order, if it matters
		current, nowOld int
	}{
		"proactive by default, the first alone and then all": {nil, nil, 4, 5, nil, 5, 0},
		"two at a time":               {proactive(&first), new(intstr.FromInt32(2)), 2, 5, []string{"web-0", "web-1", "web-2", "web-3", "web-4"}, 5, 0},
		"a percentage is rounded up":  {proactive(&last), new(intstr.FromString("21%")), 2, 5, []string{"web-4", "web-3", "web-2", "web-1", "web-0"}, 5, 0},
		"one at least":                {proactive(&first), new(intstr.FromInt32(0)), 1, 5, []string{"web-0", "web-1", "web-2", "web-3", "web-4"}, 5, 0},
		"opportunistic, no restart":   {&vmpool.PoolUpdateStrategy{Opportunistic: &vmpool.PoolOpportunisticUpdate{}}, nil, 0, 5, nil, 0, 5},
		"unmanaged, not even changed": {&vmpool.PoolUpdateStrategy{Unmanaged: &vmpool.PoolUnmanaged{}}, nil, 0, 0, nil, 0, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 5)
			w.pool.Spec.UpdateStrategy, w.pool.Spec.MaxUnavailable = tt.strategy, tt.max
			w.settle()
			require.Equal(t, tt.most, w.rolled("65Mi"))
			require.Len(t, w.changed, tt.changed)
			if tt.restarted != nil {
				require.Equal(t, tt.restarted, w.restarted)
			}
			require.Len(t, w.current(), tt.current)
			old := w.pool.Status.Condition(vmi.ConditionReplicaOutdated)
			require.Equal(t, tt.nowOld > 0, old != nil)
			if old != nil {
				require.Contains(t, old.Message, "5 of 5 VMs")
			}
			require.Len(t, w.created, 5, "no VM was made again")
		})
	}
}

func TestVMsThatAreOffGetTheTemplateAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.pool.Spec.MaxUnavailable = new(intstr.FromInt32(1))
	w.settle()
	w.find("web-1").Spec.RunStrategy = new(vmi.RunHalted)
	w.settle()
	w.template("65Mi")
	w.act(pool.Decide(w.observe()), -1)
	require.Contains(t, w.changed, "web-1")
	require.Equal(t, vmi.RunHalted, w.find("web-1").Spec.Strategy(), "its user stopped it")
	w.settle()
	require.NotContains(t, w.restarted, "web-1")
	require.Len(t, w.current(), 2)

	w.pool.Spec.VirtualMachineTemplate.Spec.RunStrategy = new(vmi.RunManual)
	w.settle()
	require.Equal(t, vmi.RunHalted, w.find("web-1").Spec.Strategy())
	require.Equal(t, vmi.RunManual, w.find("web-0").Spec.Strategy(), "whose user left the strategy as it was")
}

// A VMI that waits for its image has not failed. It is named, and does not hold up the template
// that is right, however few VMs may be down.
func TestVMsThatWaitForTheirImageAreNamedAndGetAnotherTemplate(t *testing.T) {
	t.Parallel()
	for _, healthy := range []int{0, 1, 2} {
		w := newWorld(t, 3)
		w.pool.Spec.MaxUnavailable = new(intstr.FromInt32(1))
		w.settle()
		for n := healthy; n < 3; n++ {
			w.waitsForItsImage(fmt.Sprint("web-", n))
		}
		w.step()
		c := w.pool.Status.Condition(vmi.ConditionReplicaFailure)
		require.NotNil(t, c)
		require.Equal(t, pool.FailedStart, c.Reason)
		require.Contains(t, c.Message, fmt.Sprintf("VirtualMachine web-%d does not start (ImagePullBackOff): there is no such image", healthy))
		require.Nil(t, w.pool.Status.Condition(vmi.ConditionRolloutStopped), "no other waits for it")
		waiting := w.vmis[fmt.Sprint("web-", healthy)].Status.Condition(vmi.ConditionSynchronized)
		image := *waiting
		for n := healthy; n < 3; n++ {
			w.vmis[fmt.Sprint("web-", n)].Status.Condition(vmi.ConditionSynchronized).Reason = instance.PreviousPodExists
		}
		w.step()
		require.Nil(t, w.pool.Status.Condition(vmi.ConditionReplicaFailure), "it starts when the pod before has ended")
		*waiting = image
		w.rolled("66Mi")
		require.Nil(t, w.pool.Status.Condition(vmi.ConditionReplicaFailure))
		require.Len(t, w.current(), 3)
	}
}

func TestARollOutStopsAtAVMThatWaitsForItsImage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.settle()
	w.template("65Mi")
	for len(w.restarted) == 0 {
		w.step()
	}
	for w.vmis[w.restarted[0]] == nil || w.vmis[w.restarted[0]].Labels[vmi.PoolRevisionLabel] != w.find(w.restarted[0]).Labels[vmi.PoolRevisionLabel] {
		w.step()
	}
	w.waitsForItsImage(w.restarted[0])
	for range 20 {
		w.step()
	}
	require.Len(t, w.restarted, 1)
	c := w.pool.Status.Condition(vmi.ConditionRolloutStopped)
	require.NotNil(t, c)
	require.Contains(t, c.Message, "VirtualMachine "+w.restarted[0]+" does not start (ImagePullBackOff) with the template: there is no such image. 2 more VMs wait")
	w.rolled("66Mi")
	require.Nil(t, w.pool.Status.Condition(vmi.ConditionRolloutStopped))
}

func TestARollOutStopsAtAVMThatDoesNotStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5)
	w.settle()
	w.broken["65Mi"] = true
	w.template("65Mi")
	for range 20 {
		w.step()
	}
	require.Len(t, w.restarted, 1)
	c := w.pool.Status.Condition(vmi.ConditionRolloutStopped)
	require.NotNil(t, c)
	require.Equal(t, pool.FailedStart, c.Reason)
	require.Contains(t, c.Message, "VirtualMachine "+w.restarted[0]+" failed to start")
	require.Contains(t, c.Message, "no such disk")
	require.Contains(t, c.Message, "4 more VMs wait")
	ready := 0
	for _, v := range w.vms {
		if v.Status.Ready {
			ready++
		}
	}
	require.Equal(t, 4, ready)
	warnings := 0
	for _, e := range w.events {
		if e.Warning {
			warnings++
		}
	}
	require.Equal(t, 2, warnings, "one for each condition")

	w.rolled("66Mi")
	require.Nil(t, w.pool.Status.Condition(vmi.ConditionRolloutStopped))
	require.Len(t, w.current(), 5)
	require.Len(t, w.revisions, 1, "what nothing runs with is forgotten")
}

func TestATemplateThatReturnsHasTheRevisionThatItHad(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.settle()
	r, err := pool.Revision(w.pool)
	require.NoError(t, err)
	w.template("65Mi")
	w.template("64Mi")
	w.settle()
	require.Equal(t, r.Name, w.revisions[0].Name)
	require.Empty(t, w.changed)
}

func TestAVMThatFailsToStartIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	w.pool.Spec.Autohealing = &vmpool.PoolAutohealing{}
	w.pool.Spec.MaxUnavailable = new(intstr.FromInt32(2))
	w.broken["64Mi"] = true
	began := w.now
	gone := func() (at []time.Duration, most int) {
		n := len(w.deleted)
		for range 4000 {
			w.step()
			leaving := 0
			for _, v := range w.vms {
				if v.DeletionTimestamp != nil {
					leaving++
				}
			}
			most = max(most, leaving+4-len(w.vms))
			for ; n < len(w.deleted); n++ {
				at = append(at, w.now.Sub(began).Round(time.Minute))
			}
		}
		return at, most
	}
	at, most := gone()
	require.GreaterOrEqual(t, at[0], 5*time.Minute)
	require.LessOrEqual(t, most, 2)
	require.Equal(t, []string{"web-0", "web-1", "web-2", "web-3"}, w.names(), "they keep their names")
	require.LessOrEqual(t, len(at), 4*5, "each time after twice the time: 5, 10, 20, 40, 60 minutes")
	require.Greater(t, len(at), 4)
	require.NotEmpty(t, w.pool.Status.Replaced)

	w.broken["64Mi"] = false
	w.settle()
	require.Empty(t, w.pool.Status.Replaced)
}

func TestWhatIsNotReplaced(t *testing.T) {
	t.Parallel()
	failing := func(w *world) *vmi.VirtualMachine {
		v := w.find("web-0")
		delete(w.vmis, "web-0")
		v.Status.StartFailure, v.Status.Ready = &vmi.StartFailure{ConsecutiveFailCount: 3}, false
		v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionFalse}, metav1.NewTime(w.now.Add(-time.Hour)))
		return v
	}
	for name, change := range map[string]func(*world, *vmi.VirtualMachine){
		"without autohealing":       func(w *world, _ *vmi.VirtualMachine) { w.pool.Spec.Autohealing = nil },
		"one that its user stopped": func(_ *world, v *vmi.VirtualMachine) { v.Spec.RunStrategy = new(vmi.RunHalted) },
		"one that is asked to stop": func(_ *world, v *vmi.VirtualMachine) {
			v.Status.StateChangeRequests = []vmi.StateChangeRequest{{Action: vmi.StopRequest}}
		},
		"one that failed fewer times": func(_ *world, v *vmi.VirtualMachine) { v.Status.StartFailure.ConsecutiveFailCount = 2 },
		"one that failed not for long": func(w *world, v *vmi.VirtualMachine) {
			v.Status.Conditions[0].LastTransitionTime = metav1.NewTime(w.now.Add(-time.Minute))
		},
		"one that is being restored": func(_ *world, v *vmi.VirtualMachine) { v.Status.RestoreInProgress = new("r") },
		"while others are being replaced": func(w *world, _ *vmi.VirtualMachine) {
			w.pool.Spec.MaxUnavailable = new(intstr.FromInt32(1))
			w.pool.Status.Replaced = []vmpool.ReplacedVM{{Name: "web-1", UID: "former", Count: 1}}
			w.find("web-1").Status.Ready = false
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2)
			w.pool.Spec.Autohealing = &vmpool.PoolAutohealing{StartUpFailureThreshold: new(int32(3)), MinFailingToStartDuration: &metav1.Duration{Duration: 5 * time.Minute}}
			w.settle()
			v := failing(w)
			require.NotEmpty(t, deletions(pool.Decide(w.observe())), "it would be replaced")
			change(w, v)
			require.Empty(t, deletions(pool.Decide(w.observe())))
		})
	}
}

func deletions(p scheduler.Plan) (names []string) {
	for _, a := range p.Actions {
		if d, ok := a.(scheduler.DeleteVM); ok {
			names = append(names, d.VM.Name)
		}
	}
	return names
}

func TestAReplacementIsCountedOnceAlsoIfTheControllerDies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.pool.Spec.Autohealing = &vmpool.PoolAutohealing{StartUpFailureThreshold: new(int32(1)), MinFailingToStartDuration: &metav1.Duration{}}
	w.broken["64Mi"] = true
	w.step()
	w.step()
	p := pool.Decide(w.observe())
	i := slices.IndexFunc(p.Actions, func(a scheduler.Action) bool { _, ok := a.(scheduler.DeleteVM); return ok })
	require.Positive(t, i)
	w.act(p, i) // not the deletion
	require.Equal(t, int32(1), w.pool.Status.Replaced[0].Count)
	w.act(pool.Decide(w.observe()), -1)
	require.Equal(t, []string{"web-0"}, w.deleted)
	require.Equal(t, int32(1), w.pool.Status.Replaced[0].Count)
	w.step()
	require.Len(t, w.created, 1, "its name is not free yet")
	w.step()
	require.Equal(t, []string{"web-0", "web-0"}, w.created)
}

func TestAVMThatIsRefusedIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.refusal = &vmi.Finding{Reason: "FailedCreate", Message: "exceeded quota"}
	w.step()
	require.Empty(t, w.created)
	require.Equal(t, "exceeded quota", w.pool.Status.Condition(vmi.ConditionReplicaFailure).Message)
	w.refusal = nil
	w.settle()
	require.Nil(t, w.pool.Status.Condition(vmi.ConditionReplicaFailure))
}

func TestAPoolThatCannotMakeVMsSaysWhy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*vmpool.VirtualMachinePool)
		want   string
	}{
		"no template":         {func(p *vmpool.VirtualMachinePool) { p.Spec.VirtualMachineTemplate = nil }, "spec.virtualMachineTemplate"},
		"no selector":         {func(p *vmpool.VirtualMachinePool) { p.Spec.Selector = nil }, "spec.selector"},
		"a selector of other": {func(p *vmpool.VirtualMachinePool) { p.Spec.Selector.MatchLabels = map[string]string{"app": "db"} }, "spec.selector"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			w.pool.Spec.Selector = w.pool.Spec.Selector.DeepCopy()
			tt.change(w.pool)
			w.step()
			require.Empty(t, w.created)
			c := w.pool.Status.Condition(vmi.ConditionReplicaFailure)
			require.Equal(t, pool.InvalidTemplate, c.Reason)
			require.Contains(t, c.Message, tt.want)
		})
	}
	w := newWorld(t, 1)
	w.pool.DeletionTimestamp = &metav1.Time{Time: w.now}
	require.Empty(t, pool.Decide(w.observe()))
}

func TestAPoolComesToWhatIsAskedAfterItsControllerDiedAnywhere(t *testing.T) {
	t.Parallel()
	for seed := range testenv.Seeds(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		w := newWorld(t, int32(r.IntN(6)))
		for range 60 {
			switch r.IntN(8) {
			case 0:
				w.pool.Spec.Replicas = new(int32(r.IntN(6)))
			case 1:
				w.template(fmt.Sprint(64+r.IntN(3), "Mi"))
			case 2:
				if len(w.vms) > 0 {
					w.vms[r.IntN(len(w.vms))].DeletionTimestamp = &metav1.Time{Time: w.now}
				}
			}
			p := pool.Decide(w.observe())
			w.act(p, r.IntN(len(p.Actions)+1))
			if r.IntN(2) == 0 {
				w.play()
			}
			w.now = w.now.Add(time.Second)
		}
		w.settle()
		require.Equal(t, w.pool.Spec.Wanted(), len(w.vms), "seed %d", seed)
		require.Len(t, w.current(), len(w.vms), "seed %d", seed)
		require.Equal(t, int32(len(w.vms)), w.pool.Status.ReadyReplicas, "seed %d", seed)
	}
}

func TestATemplateReachesAThousandVMs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1000)
	w.pool.Spec.MaxUnavailable = new(intstr.FromString("10%"))
	w.settle()
	require.Len(t, w.created, 1000)
	require.LessOrEqual(t, len(w.statuses), 30)
	require.LessOrEqual(t, w.rolled("65Mi"), 100)
	require.Len(t, w.changed, 1000)
	require.Len(t, w.restarted, 1000)
}

func BenchmarkDecideForAThousandVMs(b *testing.B) {
	w := newWorld(&testing.T{}, 1000)
	for range 30 {
		w.step()
	}
	w.template("65Mi")
	o := w.observe()
	for b.Loop() {
		pool.Decide(o)
	}
}
