package vm_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/internal/vmi/verb"
	"github.com/podvisor/podvisor/scheduler/vm"
	"github.com/podvisor/podvisor/vmi"
)

func TestAStartCostsThreeWritesAndTheNextTwo(t *testing.T) {
	w := newWorld(t, vmi.RunAlways)
	w.settleWithin(0)
	require.Empty(t, w.vm.Status.Conditions, "nothing is known but that it starts")
	w.quick()
	require.Equal(t, []string{"create revision", "create vmi", "status Running"}, w.writes)
	require.True(t, w.vm.Status.Ready)
	require.True(t, w.vm.Status.Created)
	require.Equal(t, int64(1), w.vm.Status.ObservedGeneration)
	require.Equal(t, vmi.RunAlways, w.vm.Status.RunStrategy)

	w.writes = nil
	w.edit(func(s *vmi.VirtualMachineSpec) { s.RunStrategy = new(vmi.RunHalted) })
	w.settle()
	w.gone()
	require.Equal(t, []string{"status Stopping", "delete vmi", "status Stopped"}, w.writes)
	require.False(t, w.vm.Status.Created)

	w.writes = nil
	w.edit(func(s *vmi.VirtualMachineSpec) { s.RunStrategy = new(vmi.RunAlways) })
	w.settleWithin(0)
	w.quick()
	require.Equal(t, []string{"create vmi", "status Running"}, w.writes, "from the revision that it had")
	require.Equal(t, "3", w.vmi.Annotations[vmi.VMGenerationAnnotation])
	require.Equal(t, int64(1), w.vmi.RevisionGeneration())
	require.Equal(t, int64(3), w.vm.Status.ObservedGeneration)
	require.Equal(t, vmi.RunAlways, w.vm.Status.RunStrategy)

	w.writes = nil
	w.edit(func(s *vmi.VirtualMachineSpec) { s.Template.Spec.Hostname = "other" })
	w.settle()
	require.NotNil(t, w.vm.Status.Condition(vmi.ConditionRestartRequired))
	w.phase(vmi.PhaseSucceeded)
	w.settle()
	w.gone()
	w.run()
	require.Equal(t, int64(4), w.vmi.RevisionGeneration(), "it has another spec")
	require.Len(t, w.revisions, 1)
}

// The verb writes the requests and that the VM stops.
func TestARestartByItsVerbCostsThreeWrites(t *testing.T) {
	for strategy, want := range map[vmi.RunStrategy][]string{
		vmi.RunAlways:         {"delete vmi", "create vmi", "status Running"},
		vmi.RunManual:         {"delete vmi", "create vmi", "status Starting", "status Running"},
		vmi.RunRerunOnFailure: {"delete vmi", "create vmi", "status Starting", "status Running"},
	} {
		t.Run(string(strategy), func(t *testing.T) {
			w := newWorld(t, strategy)
			w.request(vmi.StartRequest, nil)
			w.settle()
			w.run()
			w.writes = nil
			w.request(vmi.StopRequest, nil)
			w.request(vmi.StartRequest, nil)
			verb.SetStopping(&w.vm.Status, metav1.NewTime(w.now))
			w.settleWithin(0)
			w.goneWithin(0)
			require.NotNil(t, w.vmi)
			w.quick()
			require.Equal(t, want, w.writes)
			require.Empty(t, w.vm.Status.StateChangeRequests)
			require.True(t, w.vm.Status.Ready)
		})
	}
}

func TestAStartThatTakesItsTimeIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		strategy vmi.RunStrategy
		before   func(*world)
		atOnce   bool
	}{
		"Always":                            {vmi.RunAlways, nil, false},
		"Once":                              {vmi.RunOnce, nil, false},
		"the strategy counts once":          {vmi.RunRerunOnFailure, nil, true},
		"the request counts once":           {vmi.RunManual, func(w *world) { w.request(vmi.StartRequest, nil) }, true},
		"the request says how":              {vmi.RunAlways, func(w *world) { w.request(vmi.StartRequest, map[string]string{"paused": "true"}) }, true},
		"the request says what Always does": {vmi.RunAlways, func(w *world) { w.request(vmi.StartRequest, nil) }, false},
		"the status says that a guest runs": {vmi.RunAlways, func(w *world) { w.vm.Status.Ready = true }, true},
		"the status says what was in the way": {vmi.RunAlways, func(w *world) {
			w.vm.Status.SetCondition(vmi.Condition{Type: vmi.ConditionFailure, Status: corev1.ConditionTrue, Reason: vm.FailedCreate}, metav1.NewTime(w.now))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.strategy)
			if c.before != nil {
				c.before(w)
			}
			w.settleWithin(0)
			require.NotNil(t, w.vmi)
			require.Equal(t, c.atOnce, w.vm.Status.PrintableStatus == vmi.StatusStarting, "%v", w.writes)
			w.settleWithin(2 * time.Second)
			require.Equal(t, vmi.StatusStarting, w.vm.Status.PrintableStatus)
			require.True(t, w.vm.Status.Created)
			require.Empty(t, w.vm.Status.StateChangeRequests)
			require.Equal(t, c.strategy, w.vm.Status.RunStrategy)
		})
	}
}

// Nothing is held back longer because the API server's clock is ahead.
func TestAStartIsSaidAtOnceIfTheClocksDiffer(t *testing.T) {
	w := newWorld(t, vmi.RunAlways)
	w.settleWithin(0)
	w.vmi.CreationTimestamp = metav1.NewTime(w.now.Add(time.Hour))
	w.settleWithin(0)
	require.Equal(t, vmi.StatusStarting, w.vm.Status.PrintableStatus)
}

// A start that failed before anything was written of it is counted, and its cause is said.
func TestAStartThatFailsAtOnceIsCounted(t *testing.T) {
	w := newWorld(t, vmi.RunHalted)
	w.settle()
	w.edit(func(s *vmi.VirtualMachineSpec) { s.RunStrategy = new(vmi.RunAlways) })
	w.settleWithin(0)
	require.Equal(t, vmi.RunHalted, w.vm.Status.RunStrategy)
	w.phase(vmi.PhaseFailed)
	w.settleWithin(0)
	require.NotNil(t, w.vmi.DeletionTimestamp)
	require.Equal(t, 1, w.vm.Status.StartFailure.ConsecutiveFailCount)
	require.NotNil(t, w.vm.Status.Condition(vmi.ConditionFailure))
	require.Equal(t, vmi.RunAlways, w.vm.Status.RunStrategy)
}

func TestEachRunStrategyActsOnTheEndOfItsVMI(t *testing.T) {
	for _, c := range []struct {
		strategy vmi.RunStrategy
		ask      bool // for the start
		end      vmi.Phase
		deleted  bool // the VMI
		again    bool // it runs
	}{
		{vmi.RunAlways, false, vmi.PhaseSucceeded, true, true},
		{vmi.RunAlways, false, vmi.PhaseFailed, true, true},
		{vmi.RunRerunOnFailure, false, vmi.PhaseSucceeded, true, false},
		{vmi.RunRerunOnFailure, false, vmi.PhaseFailed, true, true},
		{vmi.RunManual, true, vmi.PhaseSucceeded, false, false},
		{vmi.RunManual, true, vmi.PhaseFailed, false, false},
		{vmi.RunOnce, false, vmi.PhaseSucceeded, false, false},
		{vmi.RunOnce, false, vmi.PhaseFailed, false, false},
	} {
		t.Run(string(c.strategy)+" after "+string(c.end), func(t *testing.T) {
			w := newWorld(t, c.strategy)
			w.settle()
			if c.ask {
				require.Nil(t, w.vmi)
				w.request(vmi.StartRequest, nil)
				w.settle()
			}
			require.NotNil(t, w.vmi)
			w.run()
			require.Empty(t, w.vm.Status.StateChangeRequests)
			w.phase(c.end)
			w.settle()
			require.Equal(t, c.deleted, w.vmi.DeletionTimestamp != nil)
			if c.deleted {
				w.gone()
				require.Equal(t, c.again, w.vmi != nil)
			}
			want := vmi.StatusStopped
			if c.again {
				want = vmi.StatusStarting
			}
			require.Equal(t, want, w.vm.Status.PrintableStatus)
		})
	}
}

func TestAStartThatFailsIsTriedLaterAndLater(t *testing.T) {
	w := newWorld(t, vmi.RunAlways)
	var waited []time.Duration
	for range 7 {
		w.settle()
		require.NotNil(t, w.vmi)
		w.phase(vmi.PhaseFailed)
		w.settle()
		w.gone()
		require.Equal(t, vmi.StatusCrashLoopBackOff, w.vm.Status.PrintableStatus)
		at := w.vm.Status.StartFailure.RetryAfterTimestamp.Time
		waited = append(waited, at.Sub(w.now))
		w.now = at
	}
	require.Equal(t, []time.Duration{10 * time.Second, 40 * time.Second, 90 * time.Second, 160 * time.Second, 250 * time.Second, 300 * time.Second, 300 * time.Second}, waited)
	w.settle()
	w.run()
	require.Nil(t, w.vm.Status.StartFailure)
}

func TestStopAndStartRequests(t *testing.T) {
	for _, s := range []vmi.RunStrategy{vmi.RunManual, vmi.RunRerunOnFailure, vmi.RunAlways} {
		t.Run(string(s), func(t *testing.T) {
			w := newWorld(t, s)
			w.request(vmi.StartRequest, nil)
			w.settle()
			w.run()
			// A restart.
			w.request(vmi.StopRequest, nil)
			w.request(vmi.StartRequest, nil)
			w.settle()
			before := w.vmi.UID
			require.Equal(t, vmi.StatusStopping, w.vm.Status.PrintableStatus)
			w.gone()
			require.NotNil(t, w.vmi)
			require.NotEqual(t, before, w.vmi.UID)
			require.Empty(t, w.vm.Status.StateChangeRequests)
			w.run()
			if s == vmi.RunAlways {
				return
			}
			w.request(vmi.StopRequest, nil)
			w.settle()
			w.phase(vmi.PhaseFailed) // its guest did not power off in time
			w.settle()
			w.gone()
			require.Nil(t, w.vmi)
		})
	}
}

func TestAHaltedVMStartsPausedWhenItIsAskedTo(t *testing.T) {
	w := newWorld(t, vmi.RunHalted)
	w.settle()
	w.request(vmi.StartRequest, map[string]string{"paused": "true"})
	w.settle()
	require.Equal(t, vmi.RunAlways, w.vm.Spec.Strategy())
	require.NotNil(t, w.vmi)
	require.Equal(t, vmi.StartPaused, *w.vmi.Spec.StartStrategy)
	require.Nil(t, w.vm.Spec.Template.Spec.StartStrategy)
}

func TestAGuestKeepsItsIdentity(t *testing.T) {
	w := newWorld(t, vmi.RunAlways)
	w.vm.Spec.Template.Spec.Domain.Firmware = nil
	w.settle()
	w.run()
	first := w.vmi.DeepCopy()
	w.phase(vmi.PhaseSucceeded)
	w.settle()
	w.gone()
	require.NotEqual(t, first.UID, w.vmi.UID)
	require.Equal(t, first.Spec.Domain.Firmware.UUID, w.vmi.Spec.Domain.Firmware.UUID)
	require.NotEmpty(t, w.vmi.Spec.Domain.Firmware.UUID)
	require.NotEmpty(t, w.vmi.Spec.Domain.Devices.Interfaces[0].MacAddress)
	require.Equal(t, first.Spec.Domain.Devices.Interfaces, w.vmi.Spec.Domain.Devices.Interfaces)
	require.Nil(t, w.vm.Spec.Template.Spec.Domain.Firmware, "the user's spec is not written")
}

func TestARestartIsRequiredForWhatARunningGuestDoesNotTake(t *testing.T) {
	w := newWorld(t, vmi.RunAlways)
	w.settle()
	w.run()
	running := w.vmi.UID
	w.edit(func(s *vmi.VirtualMachineSpec) { s.Template.Spec.Hostname = "other" })
	w.settle()
	require.NotNil(t, w.vm.Status.Condition(vmi.ConditionRestartRequired))
	require.Equal(t, running, w.vmi.UID)
	require.Nil(t, w.vmi.DeletionTimestamp)
	require.Equal(t, int64(1), w.vm.Status.ObservedGeneration)
	w.edit(func(s *vmi.VirtualMachineSpec) { s.Template.Spec.Hostname = "" })
	w.settle()
	require.Nil(t, w.vm.Status.Condition(vmi.ConditionRestartRequired), "as it was")
	require.Equal(t, int64(3), w.vm.Status.ObservedGeneration)
	require.Equal(t, "3", w.vmi.Annotations[vmi.VMGenerationAnnotation])
	w.edit(func(s *vmi.VirtualMachineSpec) { s.Template.Spec.Hostname = "other" })
	w.settle()
	w.phase(vmi.PhaseSucceeded)
	w.settle()
	w.gone()
	require.Equal(t, "other", w.vmi.Spec.Hostname)
	w.run()
	require.Nil(t, w.vm.Status.Condition(vmi.ConditionRestartRequired))
	require.Len(t, w.revisions, 1)
}

func TestDeletion(t *testing.T) {
	t.Run("takes the VMI along", func(t *testing.T) {
		w := newWorld(t, vmi.RunAlways)
		w.settle()
		w.run()
		w.vm.DeletionTimestamp = &metav1.Time{Time: w.now}
		w.settle()
		require.Equal(t, vmi.StatusTerminating, w.vm.Status.PrintableStatus)
		w.gone()
		require.Nil(t, w.vm)
	})
	t.Run("leaves a VMI that is orphaned", func(t *testing.T) {
		w := newWorld(t, vmi.RunAlways)
		w.settle()
		w.run()
		w.vm.DeletionTimestamp = &metav1.Time{Time: w.now}
		w.vm.Finalizers = append(w.vm.Finalizers, metav1.FinalizerOrphanDependents)
		w.settle()
		w.vmi.OwnerReferences = nil // the garbage collector
		w.settle()
		require.NotNil(t, w.vm, "its revisions are not orphaned yet")
		w.revisions[0].OwnerReferences = nil
		w.vm.Finalizers = []string{vmi.VMFinalizer}
		w.settle()
		require.Nil(t, w.vm)
		require.Empty(t, w.revisions)
		require.Nil(t, w.vmi.DeletionTimestamp)
	})
	t.Run("leaves the finalizers of others", func(t *testing.T) {
		w := newWorld(t, vmi.RunHalted)
		w.vm.Finalizers = append(w.vm.Finalizers, "example.com/mine")
		w.vm.DeletionTimestamp = &metav1.Time{Time: w.now}
		w.settle()
		require.Equal(t, []string{"example.com/mine"}, w.vm.Finalizers)
	})
	t.Run("a VMI without a controller is adopted", func(t *testing.T) {
		w := newWorld(t, vmi.RunAlways)
		w.settle()
		w.run()
		w.vmi.OwnerReferences = nil
		w.settle()
		require.Len(t, w.vmi.OwnerReferences, 1)
		require.Equal(t, 1, w.made)
	})
}

func TestAVMThatCannotBeDecodedIsNeitherStartedNorStopped(t *testing.T) {
	w := newWorld(t, vmi.RunAlways)
	w.settle()
	w.run()
	before, status := w.vmi.DeepCopy(), w.vm.Status.DeepCopy()
	spec := w.vm.Spec
	w.vm.Spec = vmi.VirtualMachineSpec{}
	vmi.SetUnreadable(w.vm, &vmi.UnreadableError{Fields: []vmi.UnreadableField{{Path: "spec.template.spec.domain.cpu.cores", Value: "-1", Message: "must be a whole number"}}})
	w.settle()
	require.Equal(t, before, w.vmi)
	c := w.vm.Status.Condition(vmi.ConditionFailure)
	require.Equal(t, vmi.ReasonUnreadableSpec, c.Reason)
	require.Contains(t, c.Message, "spec.template.spec.domain.cpu.cores: -1")
	w.vm.Annotations, w.vm.Spec = nil, spec
	w.settle()
	require.Equal(t, *status, w.vm.Status)
}

func TestAVMWithoutATemplateSaysSo(t *testing.T) {
	w := newWorld(t, vmi.RunAlways)
	w.vm.Spec.Template = nil
	w.settle()
	require.Equal(t, "InvalidSpec", w.vm.Status.Condition(vmi.ConditionFailure).Reason)
	require.Nil(t, w.vmi)
}

// Whatever happens, and wherever it is killed, the controller converges to what the
// strategy says, makes no VMI beside another, and then does nothing more.
func TestConvergesFromAnywhere(t *testing.T) {
	strategies := []vmi.RunStrategy{vmi.RunAlways, vmi.RunRerunOnFailure, vmi.RunManual, vmi.RunHalted, vmi.RunOnce}
	for seed := range testenv.Seeds(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t, strategies[r.IntN(len(strategies))])
		for range 40 {
			w.disturb(r, strategies)
			w.step(r.IntN(4))
		}
		w.calm()
		switch w.vm.Spec.Strategy() {
		case vmi.RunAlways:
			require.Equal(t, vmi.StatusRunning, w.vm.Status.PrintableStatus, "seed %d: %v", seed, w.writes)
		case vmi.RunHalted:
			require.Equal(t, vmi.StatusStopped, w.vm.Status.PrintableStatus, "seed %d: %v", seed, w.writes)
			require.Nil(t, w.vmi)
		default:
			require.Contains(t, []vmi.PrintableStatus{vmi.StatusRunning, vmi.StatusStopped}, w.vm.Status.PrintableStatus, "seed %d: %v", seed, w.writes)
		}
		require.Empty(t, w.vm.Status.StateChangeRequests, "seed %d: %v", seed, w.writes)
	}
}

// disturb is one thing that users, guests and nodes do.
func (w *world) disturb(r *rand.Rand, strategies []vmi.RunStrategy) {
	w.now = w.now.Add(time.Duration(r.IntN(60)) * time.Second)
	switch r.IntN(9) {
	case 0:
		w.edit(func(s *vmi.VirtualMachineSpec) { s.RunStrategy = new(strategies[r.IntN(len(strategies))]) })
	case 1:
		w.edit(func(s *vmi.VirtualMachineSpec) { s.Template.Spec.Hostname = []string{"", "a", "b"}[r.IntN(3)] })
	case 2:
		w.request([]vmi.StateChange{vmi.StartRequest, vmi.StopRequest}[r.IntN(2)], nil)
	case 3:
		if w.vmi != nil && w.vmi.DeletionTimestamp != nil {
			w.vmi = nil
		}
	case 4:
		if w.vmi != nil && w.vmi.DeletionTimestamp == nil {
			w.vmi.DeletionTimestamp = &metav1.Time{Time: w.now} // a user
		}
	case 5:
		if w.vmi != nil {
			w.vmi = nil // by force
		}
	default:
		if w.vmi == nil || w.vmi.Status.Phase.Final() {
			return
		}
		w.phase([]vmi.Phase{vmi.PhaseScheduling, vmi.PhaseScheduled, vmi.PhaseRunning, vmi.PhaseFailed, vmi.PhaseSucceeded}[r.IntN(5)])
	}
}

// calm lets everything go well until nothing is left to do.
func (w *world) calm() {
	w.t.Helper()
	for range 50 {
		w.settle()
		w.now = w.now.Add(6 * time.Minute)
		switch v := w.vmi; {
		case v == nil:
		case v.DeletionTimestamp != nil:
			w.vmi = nil
		case !v.Status.Phase.Final() && v.Status.Phase != vmi.PhaseRunning:
			w.phase(vmi.PhaseRunning)
		}
		if w.step(100) == 0 && (w.vmi == nil || w.vmi.Status.Phase == vmi.PhaseRunning && w.vmi.DeletionTimestamp == nil || w.vmi.Status.Phase.Final() && w.vmi.DeletionTimestamp == nil) {
			return
		}
	}
	w.t.Fatalf("finds no rest: %v", w.writes)
}
