package apiserver

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
)

func TestAVMStartsStopsAndStartsAgainWithFewWrites(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	s.play()
	v := s.createVM(vmOf("vm", vmi.RunAlways))
	v = s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.Ready })
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
	started := s.writes.all()
	require.ElementsMatch(t, []string{
		"POST controllerrevisions 201", "POST virtualmachineinstances 201", "PATCH virtualmachines/vm/status 200", // Starting
		"POST pods 201", "PATCH virtualmachineinstances/vm/status 200", "PATCH virtualmachineinstances/vm/status 200",
		"PATCH virtualmachines/vm/status 200", // Running
	}, started, "and one of virt-handler")

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
	require.Equal(t, again.Status.VirtualMachineRevisionName, revisions[0].Name)
	restarted := s.writes.all()[len(started)+len(stopped):]
	require.ElementsMatch(t, append(slices.Clone(started), "DELETE controllerrevisions/"+first.Status.VirtualMachineRevisionName+" 200"), restarted)

	s.deleteVM("vm", metav1.DeletePropagationBackground)
	s.awaitVMGone("vm")
	s.awaitGone("vm")
	require.ElementsMatch(t, []string{
		"PATCH virtualmachines/vm/status 200", "DELETE virtualmachineinstances/vm 200", "PATCH virtualmachineinstances/vm 200", "PATCH virtualmachines/vm 200",
	}, s.writes.all()[len(started)+len(stopped)+len(restarted):])
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
			first := s.awaitPhase("vm", vmi.Running)
			s.ask("vm", stopRequest(first), startRequest(nil))
			s.await("vm", func(v *vmi.VirtualMachineInstance) bool { return v.UID != first.UID && v.Status.Phase == vmi.Running })
			s.awaitVM("vm", running)
			require.Len(t, n.instances(), 2)
			if strategy == vmi.RunAlways {
				return
			}
			s.ask("vm", stopRequest(s.awaitPhase("vm", vmi.Running)))
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
		n.at(vmi.Scheduling)
	}
	v = s.createVM(v)
	switch when {
	case "while it starts":
		s.awaitPhase("vm", vmi.Scheduling)
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
		left := s.awaitPhase("vm", vmi.Running)
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
	left := s.awaitPhase("vm", vmi.Running)
	next := s.createVM(vmOf("vm", vmi.RunAlways))
	s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.Ready })
	got := s.awaitPhase("vm", vmi.Running)
	require.Equal(t, left.UID, got.UID)
	require.True(t, metav1.IsControlledBy(got, next))
	require.Len(t, n.instances(), 1)
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
	s.awaitPhase("vm", vmi.Running)
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
			first := s.awaitPhase("vm", vmi.Running)
			s.ask("vm", stopRequest(first), startRequest(nil))
			s.await("vm", func(v *vmi.VirtualMachineInstance) bool { return v.UID != first.UID && v.Status.Phase == vmi.Running })
			s.awaitVM("vm", ready)
			require.Len(t, n.instances(), 2)
			if strategy != vmi.RunManual {
				second := s.awaitPhase("vm", vmi.Running)
				n.ends("vm", vmi.Failed)
				s.await("vm", func(v *vmi.VirtualMachineInstance) bool { return v.UID != second.UID && v.Status.Phase == vmi.Running })
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
	n.at(vmi.Scheduled)
	s.createVM(vmOf("vm", vmi.RunAlways))
	first := s.awaitPhase("vm", vmi.Scheduled)
	n.ends("vm", vmi.Failed)
	v := s.awaitPrintable("vm", vmi.StatusCrashLoopBackOff)
	require.Equal(t, 1, v.Status.StartFailure.ConsecutiveFailCount)
	require.Equal(t, first.UID, v.Status.StartFailure.LastFailedVMIUID)
	wait := time.Until(v.Status.StartFailure.RetryAfterTimestamp.Time)
	require.LessOrEqual(t, wait, 15*time.Second)
	before := len(own(s.writes.all(), "virtualmachines/vm/status"))
	n.at("")
	v = s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.Ready })
	require.Nil(t, v.Status.StartFailure)
	require.False(t, time.Now().Before(first.CreationTimestamp.Add(10*time.Second)))
	require.LessOrEqual(t, len(own(s.writes.all(), "virtualmachines/vm/status"))-before, 2)
}

func TestAGuestThatRanAndPoweredItselfOffIsStartedAgainAtOnce(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	n := s.play()
	s.createVM(vmOf("vm", vmi.RunAlways))
	s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.Ready })
	for _, end := range []vmi.Phase{vmi.Succeeded, vmi.Failed} {
		before := s.awaitPhase("vm", vmi.Running)
		n.ends("vm", end)
		began := time.Now()
		s.await("vm", func(v *vmi.VirtualMachineInstance) bool { return v.UID != before.UID && v.Status.Phase == vmi.Running })
		require.Less(t, time.Since(began), 8*time.Second, "the shortest back-off is 10 s")
		v := s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.Ready })
		require.Nil(t, v.Status.StartFailure)
	}
	require.Len(t, n.instances(), 3)
}

// The templates of running VMs are edited: nothing of what runs is touched, and what is
// new is there after the next start.
func TestARollingEditDisturbsNoVM(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	s.play()
	const all = 10
	before := map[string]*vmi.VirtualMachineInstance{}
	for i := range all {
		s.createVM(vmOf(fmt.Sprintf("vm%d", i), vmi.RunAlways))
	}
	for i := range all {
		name := fmt.Sprintf("vm%d", i)
		s.awaitVM(name, func(v *vmi.VirtualMachine) bool { return v.Status.Ready })
		before[name] = s.awaitPhase(name, vmi.Running)
	}
	pods := s.podUIDs()
	writes := len(s.writes.all())
	for i := range all {
		s.editVM(fmt.Sprintf("vm%d", i), `{"spec":{"template":{"spec":{"hostname":"edited","terminationGracePeriodSeconds":7}}}}`)
	}
	for i := range all {
		name := fmt.Sprintf("vm%d", i)
		v := s.awaitVM(name, func(v *vmi.VirtualMachine) bool { return v.Status.Condition(vmi.ConditionRestartRequired) != nil })
		require.Equal(t, int64(1), v.Status.ObservedGeneration)
		require.Equal(t, int64(2), v.Status.DesiredGeneration)
		now := s.awaitPhase(name, vmi.Running)
		require.Equal(t, before[name].ResourceVersion, now.ResourceVersion, "nothing of the VMI is written")
	}
	require.Equal(t, pods, s.podUIDs())
	require.Len(t, s.writes.all(), writes+all, "one status of each VM")

	s.ask("vm0", stopRequest(before["vm0"]), startRequest(nil))
	v := s.await("vm0", func(v *vmi.VirtualMachineInstance) bool {
		return v.UID != before["vm0"].UID && v.Status.Phase == vmi.Running
	})
	require.Equal(t, "edited", v.Spec.Hostname)
	vm := s.awaitVM("vm0", func(v *vmi.VirtualMachine) bool {
		return v.Status.Ready && v.Status.Condition(vmi.ConditionRestartRequired) == nil
	})
	require.Equal(t, int64(2), vm.Status.ObservedGeneration)

	// What is taken back needs no restart.
	s.editVM("vm1", `{"spec":{"template":{"spec":{"hostname":null,"terminationGracePeriodSeconds":null}}}}`)
	vm = s.awaitVM("vm1", func(v *vmi.VirtualMachine) bool { return v.Status.Condition(vmi.ConditionRestartRequired) == nil })
	require.Equal(t, int64(3), vm.Status.ObservedGeneration)
	v = s.await("vm1", func(v *vmi.VirtualMachineInstance) bool { return v.Annotations[vmi.VMGenerationAnnotation] == "3" })
	require.Equal(t, before["vm1"].UID, v.UID)
}

// podUIDs are the UIDs of the pods of the namespace.
func (s space) podUIDs() map[types.UID]bool {
	s.t.Helper()
	l, err := s.pods.List(s.t.Context(), metav1.ListOptions{})
	require.NoError(s.t, err)
	out := map[types.UID]bool{}
	for _, p := range l.Items {
		out[p.UID] = true
	}
	return out
}

// noInstances lets no VMI be made in the namespace.
func (s space) noInstances() (lift func()) {
	s.t.Helper()
	quotas := world.kube.CoreV1().ResourceQuotas(s.name)
	hard := corev1.ResourceList{"count/virtualmachineinstances.kubevirt.io": resource.MustParse("0")}
	q, err := quotas.Create(s.t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "vmis"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	q.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: hard}
	_, err = quotas.UpdateStatus(s.t.Context(), q, metav1.UpdateOptions{})
	require.NoError(s.t, err)
	eventually(s.t, func() error {
		_, err := s.vmis.Create(s.t.Context(), guest("probe"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsForbidden(err) {
			return nil
		}
		return fmt.Errorf("VMIs are accepted: %w", err)
	})
	return func() {
		s.t.Helper()
		require.NoError(s.t, quotas.Delete(s.t.Context(), "vmis", metav1.DeleteOptions{}))
	}
}

func TestVMsWhoseVMIsAreRefusedSaySoCostLittleAndGoOn(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	lift := s.noInstances()
	s.controlVMs()
	s.play()
	const all = 20
	for i := range all {
		s.createVM(vmOf(fmt.Sprintf("vm%d", i), vmi.RunAlways))
	}
	for i := range all {
		v := s.awaitVM(fmt.Sprintf("vm%d", i), func(v *vmi.VirtualMachine) bool { return v.Status.Condition(vmi.ConditionFailure) != nil })
		c := v.Status.Condition(vmi.ConditionFailure)
		require.Equal(t, "FailedCreate", c.Reason)
		require.Contains(t, c.Message, "exceeded quota: vmis")
		require.False(t, v.Status.Created)
	}
	before := len(s.writes.all())
	time.Sleep(6 * time.Second)
	after := s.writes.all()[before:]
	require.LessOrEqual(t, len(after), 8, "%q", after)
	require.NotEmpty(t, after)
	require.Len(t, own(after, "POST virtualmachineinstances 403"), len(after), "%q: neither a status nor a revision is written again", after)
	lift()
	for i := range all {
		v := s.awaitVM(fmt.Sprintf("vm%d", i), func(v *vmi.VirtualMachine) bool { return v.Status.Ready })
		require.Nil(t, v.Status.Condition(vmi.ConditionFailure))
	}
}

// The policy that keeps users from writing these labels does not apply to
// virt-controller: a template must not bring them to a VMI.
func TestAttackATemplateGivesAVMIOnlyWhatItsUserMayWrite(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	s.play()
	v := vmOf("vm", vmi.RunAlways)
	m := &v.Spec.Template.ObjectMeta
	m.Labels = map[string]string{"mine": "yes"}
	for _, k := range vmi.ReservedLabels() {
		m.Labels[k] = "x"
	}
	m.Annotations = map[string]string{"mine": "yes", vmi.VMGenerationAnnotation: "99"}
	m.Name, m.Namespace, m.UID, m.Finalizers = "other", "default", "u", []string{"example.com/mine"}
	m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "u"}}
	stored, err := s.vms().Create(t.Context(), v, metav1.CreateOptions{})
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
		for _, k := range vmi.ReservedLabels() {
			delete(m.Labels, k) // a policy refuses them
		}
		stored, err = s.vms().Create(t.Context(), v, metav1.CreateOptions{})
	}
	require.NoError(t, err)
	got := s.awaitPhase("vm", vmi.Running)
	require.Equal(t, map[string]string{"mine": "yes"}, got.Labels)
	require.Equal(t, "yes", got.Annotations["mine"])
	require.Equal(t, "1", got.Annotations[vmi.VMGenerationAnnotation])
	require.Equal(t, []string{vmi.Finalizer}, got.Finalizers)
	require.Len(t, got.OwnerReferences, 1)
	require.True(t, metav1.IsControlledBy(got, stored))
}

func TestTheStatusOfAVMSaysWhyItsPodDoesNotRun(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	n := s.play()
	n.at(vmi.Scheduling)
	s.createVM(vmOf("vm", vmi.RunAlways))
	p := s.pod(s.awaitPhase("vm", vmi.Scheduling))
	s.awaitPrintable("vm", vmi.StatusStarting)
	s.status(p, func(st *corev1.PodStatus) {
		st.Phase = corev1.PodPending
		st.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available"}}
	})
	s.awaitPrintable("vm", vmi.StatusUnschedulable)
	s.bind(p, "n1")
	s.status(p, func(st *corev1.PodStatus) { st.Conditions = nil })
	s.awaitPrintable("vm", vmi.StatusStarting)
	s.status(p, waiting("ErrImagePull", "no such image"))
	s.awaitPrintable("vm", vmi.StatusErrImagePull)
	n.at("")
	s.awaitPrintable("vm", vmi.StatusRunning)
	s.editVM("vm", `{"spec":{"runStrategy":"Halted"}}`)
	s.awaitPrintable("vm", vmi.StatusStopped)
	n.at(vmi.Scheduling)
	s.editVM("vm", `{"spec":{"runStrategy":"Always"}}`)
	p = s.pod(s.awaitPhase("vm", vmi.Scheduling))
	s.bind(p, "n1")
	s.status(p, waiting("ImagePullBackOff", "Back-off pulling image"))
	s.awaitPrintable("vm", vmi.StatusImagePullBackOff)
}
