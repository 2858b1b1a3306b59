package apiserver

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/vmi/verb"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

func TestAVMStartsStopsAndStartsAgainWithFewWrites(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	s.play()
	s.createVM(vmOf("vm", vmi.RunAlways))
	v := s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.Ready })
	require.Equal(t, vmi.StatusRunning, v.Status.PrintableStatus)
	require.True(t, v.Status.Created)
	require.Equal(t, vmi.RunAlways, v.Status.RunStrategy)
	require.Equal(t, v.Generation, v.Status.ObservedGeneration)
	require.Equal(t, v.Generation, v.Status.DesiredGeneration)
	first, err := s.vmis.Get(t.Context(), "vm", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "revision-start-vm-"+string(v.UID)+"-1", first.Status.VirtualMachineRevisionName)
	require.Equal(t, "1", first.Annotations[vmi.VMGenerationAnnotation])
	require.True(t, metav1.IsControlledBy(first, v))
	s.awaitGates()
	started := s.writes.all()
	require.ElementsMatch(t, append([]string{"POST controllerrevisions 201"}, startWrites...), s.quickVM("vm", 0), "and one of virt-handler")

	s.editVM("vm", `{"spec":{"runStrategy":"Halted"}}`)
	v = s.awaitVM("vm", func(v *vmi.VirtualMachine) bool {
		return v.Status.PrintableStatus == vmi.StatusStopped && !v.Status.Created
	})
	require.False(t, v.Status.Ready)
	require.Equal(t, vmi.RunHalted, v.Status.RunStrategy)
	stopped := s.writes.all()[len(started):]
	require.ElementsMatch(t, []string{
		"PATCH virtualmachines/vm/status 200", "DELETE virtualmachineinstances/vm 200", "PATCH virtualmachines/vm/status 200",
		"PATCH virtualmachineinstances/vm 200", // its finalizer
	}, stopped, "and one of virt-handler")

	s.editVM("vm", `{"spec":{"runStrategy":"Always"}}`)
	s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.Ready })
	again, err := s.vmis.Get(t.Context(), "vm", metav1.GetOptions{})
	require.NoError(t, err)
	require.NotEqual(t, first.UID, again.UID)
	require.Equal(t, first.Spec, again.Spec, "MAC address, UUID and serial number among them")
	revisions := s.revisions()
	require.Len(t, revisions, 1)
	require.Equal(t, first.Status.VirtualMachineRevisionName, revisions[0].Name)
	require.Equal(t, again.Status.VirtualMachineRevisionName, revisions[0].Name, "the spec is that of the first start")
	require.Equal(t, "3", again.Annotations[vmi.VMGenerationAnnotation])
	s.awaitGates()
	restarted := s.writes.all()[len(started)+len(stopped):]
	require.ElementsMatch(t, startWrites, s.quickVM("vm", len(started)+len(stopped)), "and one of virt-handler")

	s.deleteVM("vm", metav1.DeletePropagationBackground)
	s.awaitVMGone("vm")
	s.awaitGone("vm")
	require.ElementsMatch(t, []string{
		"PATCH virtualmachines/vm/status 200", "DELETE virtualmachineinstances/vm 200", "PATCH virtualmachineinstances/vm 200", "PATCH virtualmachines/vm 200",
	}, s.writes.all()[len(started)+len(stopped)+len(restarted):])
}

// startWrites are those of virt-controller for a VM that starts from a revision that it has.
var startWrites = []string{
	"POST virtualmachineinstances 201", "POST pods 201", "PATCH virtualmachineinstances/vm/status 200", "PATCH pods/status 200",
	"PATCH virtualmachineinstances/vm 200", // the label of its node
	"PATCH virtualmachines/vm/status 200",  // Running
}

// quickVM are the writes from the place on, without those of Scheduling and Starting.
func (s space) quickVM(name string, from int) []string {
	s.t.Helper()
	v, err := s.vmis.Get(s.t.Context(), name, metav1.GetOptions{})
	require.NoError(s.t, err)
	return texts(quick(s.quick(v, from), "PATCH virtualmachines/"+name+"/status 200", v.CreationTimestamp.Time, ""))
}

// quickOnes are the writes without those of Scheduling and Starting of the VMIs and VMs that
// there are.
func (s space) quickOnes(all []write) []write {
	s.t.Helper()
	l, err := s.vmis.List(s.t.Context(), metav1.ListOptions{})
	require.NoError(s.t, err)
	for i := range l.Items {
		v := &l.Items[i]
		for _, kind := range []string{"virtualmachineinstances", "virtualmachines"} {
			all = quick(all, "PATCH "+kind+"/"+v.Name+"/status 200", v.CreationTimestamp.Time, "")
		}
	}
	return all
}

func TestTheWritesOfARestartByItsVerb(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	s.play()
	s.createVM(vmOf("vm", vmi.RunAlways))
	running := func(v *vmi.VirtualMachine) bool { return v.Status.Ready && len(v.Status.StateChangeRequests) == 0 }
	s.awaitVM("vm", running)
	before := s.awaitPhase("vm", vmi.PhaseRunning)
	s.awaitGates()
	n := len(s.writes.all())
	require.Equal(t, vmi.StatusStopping, s.restart("vm").Status.PrintableStatus)
	s.await("vm", func(v *vmi.VirtualMachineInstance) bool {
		return v.UID != before.UID && v.Status.Phase == vmi.PhaseRunning
	})
	s.awaitVM("vm", running)
	s.awaitGates()
	require.ElementsMatch(t, append([]string{"DELETE virtualmachineinstances/vm 200",
		"PATCH virtualmachineinstances/vm 200", // its finalizer
	}, startWrites...), s.quickVM("vm", n), "and two of virt-handler")
}

// restart does what the verb does, and returns the VM as it is then.
func (s space) restart(name string) (v *vmi.VirtualMachine) {
	s.t.Helper()
	c, err := client.New(withToken(s.t, world.config, home, "virt-controller"))
	require.NoError(s.t, err)
	restart, ok := verb.Find(verb.VMs, "restart")
	require.True(s.t, ok)
	eventually(s.t, func() error {
		o := verb.Observed{Namespace: s.name, Name: name, Now: time.Now()}
		if o.VM, err = s.vms().Get(s.t.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		if o.VMI, err = s.vmis.Get(s.t.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		p, err := restart.Decide(o)
		if err != nil {
			return err
		}
		require.Len(s.t, p.Patches, 1)
		patch, err := p.Patches[0].JSON(p.Patches[0].Operations)
		if err != nil {
			return err
		}
		v, err = c.VirtualMachines(s.name).Patch(s.t.Context(), name, types.JSONPatchType, patch, metav1.PatchOptions{}, p.Patches[0].Subresource)
		return err
	})
	return v
}

func TestAControllerThatStartsAgainWritesNothingForVMs(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	stop := s.controlVMs()
	s.play()
	s.createVM(vmOf("vm", vmi.RunAlways))
	s.createVM(vmOf("halted", vmi.RunHalted))
	s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.Ready })
	s.awaitVM("halted", func(v *vmi.VirtualMachine) bool { return v.Status.RunStrategy == vmi.RunHalted })
	s.awaitGates()
	stop()
	before := s.writes.all()
	s.controlVMs()
	s.createVM(vmOf("later", vmi.RunHalted))
	s.awaitVM("later", func(v *vmi.VirtualMachine) bool { return v.Status.RunStrategy == vmi.RunHalted })
	require.Equal(t, append(before, "PATCH virtualmachines/later/status 200"), s.writes.all())
}

// own are the writes of objects of this kind.
func own(writes []string, resource string) []string {
	return slices.DeleteFunc(slices.Clone(writes), func(w string) bool { return !strings.Contains(w, resource) })
}

func TestTheOldFieldRunningStartsAndStops(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	s.play()
	v := vmOf("vm", vmi.RunAlways)
	v.Spec.RunStrategy, v.Spec.Running = nil, new(false)
	s.createVM(v)
	s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.RunStrategy == vmi.RunHalted })
	s.editVM("vm", `{"spec":{"running":true}}`)
	s.awaitPrintable("vm", vmi.StatusRunning)
	s.editVM("vm", `{"spec":{"running":false}}`)
	s.awaitPrintable("vm", vmi.StatusStopped)
	s.awaitGone("vm")
}

func TestRequestsStartStopAndRestartAVM(t *testing.T) {
	t.Parallel()
	for _, strategy := range []vmi.RunStrategy{vmi.RunManual, vmi.RunRerunOnFailure, vmi.RunAlways} {
		t.Run(string(strategy), func(t *testing.T) {
			t.Parallel()
			s := newSpace(t)
			s.controlVMs()
			n := s.play()
			s.createVM(vmOf("vm", strategy))
			if strategy == vmi.RunManual {
				s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.RunStrategy == strategy })
				s.ask("vm", startRequest(nil))
			}
			running := func(v *vmi.VirtualMachine) bool { return v.Status.Ready && len(v.Status.StateChangeRequests) == 0 }
			s.awaitVM("vm", running)
			first := s.awaitPhase("vm", vmi.PhaseRunning)
			s.ask("vm", stopRequest(first), startRequest(nil))
			s.await("vm", func(v *vmi.VirtualMachineInstance) bool {
				return v.UID != first.UID && v.Status.Phase == vmi.PhaseRunning
			})
			s.awaitVM("vm", running)
			require.Len(t, n.instances(), 2)
			if strategy == vmi.RunAlways {
				return
			}
			s.ask("vm", stopRequest(s.awaitPhase("vm", vmi.PhaseRunning)))
			s.awaitPrintable("vm", vmi.StatusStopped)
			s.awaitGone("vm")
			s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return len(v.Status.StateChangeRequests) == 0 })
			require.Len(t, n.instances(), 2)
		})
	}
}

func TestARequestStartsAHaltedVMPaused(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	s.play()
	s.createVM(vmOf("vm", vmi.RunHalted))
	s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.RunStrategy == vmi.RunHalted })
	s.ask("vm", startRequest(map[string]string{"paused": "true"}))
	s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Spec.Strategy() == vmi.RunAlways })
}

func TestAVMIsDeletedInEveryWay(t *testing.T) {
	t.Parallel()
	for _, p := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		for _, when := range []string{"while it starts", "while it runs", "while it stops", "twice", "while it is halted", "with the finalizer of another"} {
			t.Run(string(p)+" "+when, func(t *testing.T) {
				t.Parallel()
				s := newSpace(t)
				s.controlVMs()
				n := s.play()
				deletedWhile(t, s, n, p, when)
			})
		}
	}
}

func deletedWhile(t *testing.T, s space, n *nodes, p metav1.DeletionPropagation, when string) {
	const foreign = "example.com/mine"
	v := vmOf("vm", vmi.RunAlways)
	switch when {
	case "while it is halted":
		v = vmOf("vm", vmi.RunHalted)
	case "with the finalizer of another":
		v.Finalizers = []string{foreign}
	case "while it starts":
		n.at(vmi.PhaseScheduling)
	}
	v = s.createVM(v)
	switch when {
	case "while it starts":
		s.awaitPhase("vm", vmi.PhaseScheduling)
	case "while it is halted":
		s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.RunStrategy != "" })
	default:
		s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.Ready })
	}
	if when == "while it stops" {
		n.stuck.Store(true)
		s.editVM("vm", `{"spec":{"runStrategy":"Halted"}}`)
		s.await("vm", func(v *vmi.VirtualMachineInstance) bool { return v.DeletionTimestamp != nil })
	}
	s.deleteVM("vm", p)
	if when == "twice" {
		if err := s.vms().Delete(t.Context(), "vm", metav1.DeleteOptions{PropagationPolicy: &p}); err != nil {
			require.ErrorContains(t, err, "not found")
		}
	}
	n.stuck.Store(false)
	if when == "while it starts" {
		n.at("")
	}
	if when == "with the finalizer of another" {
		left := s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return slices.Equal(v.Finalizers, []string{foreign}) })
		require.NotNil(t, left.DeletionTimestamp)
		s.editVM("vm", `{"metadata":{"finalizers":null}}`)
	}
	s.awaitVMGone("vm")
	switch {
	case p != metav1.DeletePropagationOrphan, when == "while it is halted", when == "while it stops":
		s.awaitGone("vm")
	default:
		left := s.awaitPhase("vm", vmi.PhaseRunning)
		require.Empty(t, left.OwnerReferences)
		require.Nil(t, left.DeletionTimestamp)
	}
	require.LessOrEqual(t, len(n.instances()), 1)
	_ = v
}

func TestAVMAdoptsTheVMIThatAnEarlierOneLeft(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	n := s.play()
	s.createVM(vmOf("vm", vmi.RunAlways))
	s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.Ready })
	s.deleteVM("vm", metav1.DeletePropagationOrphan)
	s.awaitVMGone("vm")
	left := s.awaitPhase("vm", vmi.PhaseRunning)
	eventually(t, func() error {
		if n := len(s.revisions()); n != 0 {
			return fmt.Errorf("%d revisions are left", n)
		}
		return nil
	})
	next := s.createVM(vmOf("vm", vmi.RunAlways))
	s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.Ready })
	got := s.awaitPhase("vm", vmi.PhaseRunning)
	require.Equal(t, left.UID, got.UID)
	require.True(t, metav1.IsControlledBy(got, next))
	require.Len(t, n.instances(), 1)
	require.Equal(t, "0", got.Annotations[vmi.VMGenerationAnnotation], "its generation was that of another VM")
	s.editVM("vm", `{"spec":{"runStrategy":"Halted"}}`)
	s.awaitGone("vm")
	s.awaitPrintable("vm", vmi.StatusStopped)
}

func TestAVMWhoseNameIsTakenSaysSoAndStartsWhenItIsFree(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	s.play()
	other := guest("vm")
	other.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Other", Name: "o", UID: "u", Controller: new(true)}}
	s.create(other)
	s.awaitPhase("vm", vmi.PhaseRunning)
	s.createVM(vmOf("vm", vmi.RunAlways))
	v := s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.Condition(vmi.ConditionFailure) != nil })
	require.Equal(t, "VirtualMachineInstanceNameTaken", v.Status.Condition(vmi.ConditionFailure).Reason)
	s.delete("vm")
	v = s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.Ready })
	require.Nil(t, v.Status.Condition(vmi.ConditionFailure))
}

// A controller that is killed after each of its writes, without an answer to it, does
// what one does that lives.
func TestAVMLivesWithAControllerThatIsKilledBetweenAnyTwoWrites(t *testing.T) {
	t.Parallel()
	for _, strategy := range []vmi.RunStrategy{vmi.RunAlways, vmi.RunManual, vmi.RunRerunOnFailure} {
		t.Run(string(strategy), func(t *testing.T) {
			t.Parallel()
			s := newSpace(t)
			lives := s.controlBriefly(1)
			n := s.play()
			s.createVM(vmOf("vm", strategy))
			if strategy == vmi.RunManual {
				s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.RunStrategy == strategy })
				s.ask("vm", startRequest(nil))
			}
			ready := func(v *vmi.VirtualMachine) bool { return v.Status.Ready && len(v.Status.StateChangeRequests) == 0 }
			s.awaitVM("vm", ready)
			require.Len(t, n.instances(), 1)
			first := s.awaitPhase("vm", vmi.PhaseRunning)
			s.ask("vm", stopRequest(first), startRequest(nil))
			s.await("vm", func(v *vmi.VirtualMachineInstance) bool {
				return v.UID != first.UID && v.Status.Phase == vmi.PhaseRunning
			})
			s.awaitVM("vm", ready)
			require.Len(t, n.instances(), 2)
			if strategy != vmi.RunManual {
				second := s.awaitPhase("vm", vmi.PhaseRunning)
				n.ends("vm", vmi.PhaseFailed)
				s.await("vm", func(v *vmi.VirtualMachineInstance) bool {
					return v.UID != second.UID && v.Status.Phase == vmi.PhaseRunning
				})
				v := s.awaitVM("vm", ready)
				require.Len(t, n.instances(), 3)
				require.Nil(t, v.Status.StartFailure, "the guest had run")
			}
			s.editVM("vm", `{"spec":{"template":{"spec":{"hostname":"other"}}}}`)
			s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.Condition(vmi.ConditionRestartRequired) != nil })
			s.editVM("vm", `{"spec":{"runStrategy":"Halted"}}`)
			s.awaitVM("vm", func(v *vmi.VirtualMachine) bool {
				return v.Status.PrintableStatus == vmi.StatusStopped && !v.Status.Created
			})
			s.awaitGone("vm")
			s.deleteVM("vm", metav1.DeletePropagationForeground)
			s.awaitVMGone("vm")
			eventually(t, func() error {
				if left := s.revisions(); len(left) > 0 {
					return fmt.Errorf("revisions are left: %d", len(left))
				}
				return nil
			})
			t.Logf("%d lives, %d writes", lives.Load(), len(s.writes.all()))
		})
	}
}

func TestAStartThatFailsIsTriedAgainLater(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	n := s.play()
	n.at(vmi.PhaseScheduled)
	s.createVM(vmOf("vm", vmi.RunAlways))
	first := s.awaitPhase("vm", vmi.PhaseScheduled)
	n.ends("vm", vmi.PhaseFailed)
	v := s.awaitPrintable("vm", vmi.StatusCrashLoopBackOff)
	require.Equal(t, 1, v.Status.StartFailure.ConsecutiveFailCount)
	require.Equal(t, first.UID, v.Status.StartFailure.LastFailedVMIUID)
	wait := time.Until(v.Status.StartFailure.RetryAfterTimestamp.Time)
	require.LessOrEqual(t, wait, 15*time.Second)
	before := len(s.writes.all())
	n.at("")
	v = s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.Ready })
	require.Nil(t, v.Status.StartFailure)
	require.False(t, time.Now().Before(first.CreationTimestamp.Add(10*time.Second)))
	require.LessOrEqual(t, len(own(s.quickVM("vm", before), "virtualmachines/vm/status")), 2)
}

func TestAGuestThatRanAndPoweredItselfOffIsStartedAgainAtOnce(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	n := s.play()
	s.createVM(vmOf("vm", vmi.RunAlways))
	s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.Ready })
	for _, end := range []vmi.Phase{vmi.PhaseSucceeded, vmi.PhaseFailed} {
		before := s.awaitPhase("vm", vmi.PhaseRunning)
		n.ends("vm", end)
		s.awaitVM("vm", func(m *vmi.VirtualMachine) bool {
			require.Nil(t, m.Status.StartFailure, "the shortest back-off is 10 s")
			v, err := s.vmis.Get(t.Context(), "vm", metav1.GetOptions{})
			return err == nil && v.UID != before.UID && v.Status.Phase == vmi.PhaseRunning
		})
		v := s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.Ready })
		require.Nil(t, v.Status.StartFailure)
	}
	require.Len(t, n.instances(), 3)
}

// The garbage collector patches what a deletion leaves, and the content of a revision is
// immutable to the byte.
func TestTheOwnerOfAStartRevisionCanBeRemoved(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	s.play()
	s.createVM(vmOf("vm", vmi.RunAlways))
	s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.Ready })
	revisions := s.revisions()
	require.Len(t, revisions, 1)
	patch := []byte(`{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"` + string(revisions[0].OwnerReferences[0].UID) + `"}]}}`)
	_, err := world.kube.AppsV1().ControllerRevisions(s.name).Patch(t.Context(), revisions[0].Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
}
