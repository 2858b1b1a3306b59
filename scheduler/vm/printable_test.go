package vm_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/vm"
	"github.com/podvisor/podvisor/vmi"
)

// The states that only migrations (Migrating) and DataVolumes (DataVolumeError) bring
// are not among them.
func TestTheStateOfAVMInOneWord(t *testing.T) {
	condition := func(c vmi.ConditionType, s corev1.ConditionStatus, reason string) func(*world) {
		return func(w *world) {
			w.vmi.Status.SetCondition(vmi.Condition{Type: c, Status: s, Reason: reason}, metav1.NewTime(w.now))
		}
	}
	claim := func(p corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{Status: corev1.PersistentVolumeClaimStatus{Phase: p}}
	}
	scheduling := func(w *world) { w.phase(vmi.PhaseScheduling) }
	for name, c := range map[string]struct {
		strategy vmi.RunStrategy
		change   []func(*world)
		claims   map[string]*corev1.PersistentVolumeClaim
		want     vmi.PrintableStatus
	}{
		"it is off":             {strategy: vmi.RunHalted, want: vmi.StatusStopped},
		"its VMI is new":        {want: vmi.StatusStarting},
		"its VMI has a pod":     {change: []func(*world){scheduling}, want: vmi.StatusStarting},
		"its guest runs":        {change: []func(*world){func(w *world) { w.phase(vmi.PhaseRunning) }}, want: vmi.StatusRunning},
		"its guest moves":       {change: []func(*world){func(w *world) { w.phase(vmi.PhaseRunning) }, moves(nil), condition(vmi.ConditionPaused, corev1.ConditionTrue, "PausedByUser")}, want: vmi.StatusMigrating},
		"its guest has moved":   {change: []func(*world){func(w *world) { w.phase(vmi.PhaseRunning) }, moves(&metav1.Time{})}, want: vmi.StatusRunning},
		"its guest is to move":  {change: []func(*world){func(w *world) { w.phase(vmi.PhaseRunning) }, handedOver}, want: vmi.StatusRunning},
		"its guest is paused":   {change: []func(*world){func(w *world) { w.phase(vmi.PhaseRunning) }, condition(vmi.ConditionPaused, corev1.ConditionTrue, "PausedByUser")}, want: vmi.StatusPaused},
		"no node takes its pod": {change: []func(*world){scheduling, condition(vmi.ConditionPodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable)}, want: vmi.StatusUnschedulable},
		"its image does not exist": {
			change: []func(*world){scheduling, condition(vmi.ConditionSynchronized, corev1.ConditionFalse, "ErrImagePull")}, want: vmi.StatusErrImagePull,
		},
		"its image is tried later": {
			change: []func(*world){scheduling, condition(vmi.ConditionSynchronized, corev1.ConditionFalse, "ImagePullBackOff")}, want: vmi.StatusImagePullBackOff,
		},
		"its disks are filled":       {change: []func(*world){scheduling, condition(vmi.ConditionProvisioning, corev1.ConditionTrue, "")}, want: vmi.StatusProvisioning},
		"a claim does not exist":     {change: []func(*world){scheduling}, claims: map[string]*corev1.PersistentVolumeClaim{"a": nil}, want: vmi.StatusPVCNotFound},
		"a claim has no volume":      {change: []func(*world){scheduling}, claims: map[string]*corev1.PersistentVolumeClaim{"a": claim(corev1.ClaimPending)}, want: vmi.StatusWaitingForVolumeBinding},
		"its claims have volumes":    {change: []func(*world){scheduling}, claims: map[string]*corev1.PersistentVolumeClaim{"a": claim(corev1.ClaimBound)}, want: vmi.StatusStarting},
		"it is off and has no claim": {strategy: vmi.RunHalted, claims: map[string]*corev1.PersistentVolumeClaim{"a": nil}, want: vmi.StatusStopped},
		"its VMI is being deleted":   {change: []func(*world){func(w *world) { w.vmi.DeletionTimestamp = &metav1.Time{Time: w.now} }}, want: vmi.StatusStopping},
		"it is being deleted itself": {change: []func(*world){func(w *world) { w.vm.DeletionTimestamp = &metav1.Time{Time: w.now} }}, want: vmi.StatusTerminating},
		"it waits for its next start": {
			change: []func(*world){func(w *world) { w.phase(vmi.PhaseFailed); w.settle(); w.gone() }}, want: vmi.StatusCrashLoopBackOff,
		},
		"nothing is known of its VMI": {change: []func(*world){func(w *world) { w.phase(vmi.PhaseUnknown) }}, want: vmi.StatusUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			if c.strategy == "" {
				c.strategy = vmi.RunAlways
			}
			w := newWorld(t, c.strategy)
			w.settle()
			for _, f := range c.change {
				f(w)
			}
			w.claims = c.claims
			w.settle()
			require.Equal(t, c.want, w.vm.Status.PrintableStatus)
		})
	}
}

func TestAVMWhoseVMIIsRefusedSaysWhyOnce(t *testing.T) {
	w := newWorld(t, vmi.RunAlways)
	w.refusal = &vmi.Finding{Reason: vm.FailedCreate, Message: "exceeded quota"}
	p := vm.Decide(w.observe())
	require.Len(t, p.Actions, 2)
	require.Equal(t, scheduler.Emit{Warning: true, Finding: *w.refusal}, p.Actions[1])
	w.settle()
	c := w.vm.Status.Condition(vmi.ConditionFailure)
	require.Equal(t, []string{vm.FailedCreate, "exceeded quota"}, []string{c.Reason, c.Message})
	require.False(t, w.vm.Status.Created)
	w.refusal = nil
	w.settle()
	require.Nil(t, w.vm.Status.Condition(vmi.ConditionFailure))
	require.True(t, w.vm.Status.Created)
}

// What the webhook adds to the spec while it answers, and what is the same as what a
// start makes of it, needs no restart.
func TestARestartIsNotRequiredForWhatAStartWouldDecideAnyway(t *testing.T) {
	w := newWorld(t, vmi.RunAlways)
	s := &w.vm.Spec.Template.Spec
	s.Domain.Firmware, s.Domain.Machine, s.Architecture = nil, nil, ""
	w.settle()
	w.run()
	w.edit(func(s *vmi.VirtualMachineSpec) {
		t := &s.Template.Spec
		t.Architecture, t.Domain.Machine = "amd64", &vmi.Machine{Type: "q35"}
		t.Domain.Firmware = w.vmi.Spec.Domain.Firmware.DeepCopy()
		t.Domain.Devices.Interfaces[0].MacAddress = w.vmi.Spec.Domain.Devices.Interfaces[0].MacAddress
	})
	w.settle()
	require.Nil(t, w.vm.Status.Condition(vmi.ConditionRestartRequired))
	require.Equal(t, int64(2), w.vm.Status.ObservedGeneration)
	w.edit(func(s *vmi.VirtualMachineSpec) {
		s.Template.Spec.Domain.Firmware.UUID = "6a1a24a1-4061-4607-8bf4-a3963d0c5895"
	})
	w.settle()
	require.NotNil(t, w.vm.Status.Condition(vmi.ConditionRestartRequired), "the guest sees another one after it")
}

func TestAChangeThatAVMITakesWhileItRunsNeedsNoRestart(t *testing.T) {
	for name, edit := range map[string]func(*vmi.VirtualMachineInstanceSpec){
		"sockets":      func(s *vmi.VirtualMachineInstanceSpec) { s.Domain.CPU = &vmi.CPU{Sockets: 2} },
		"nodeSelector": func(s *vmi.VirtualMachineInstanceSpec) { s.NodeSelector = map[string]string{"a": "b"} },
		"tolerations":  func(s *vmi.VirtualMachineInstanceSpec) { s.Tolerations = []corev1.Toleration{{Key: "a"}} },
		"affinity":     func(s *vmi.VirtualMachineInstanceSpec) { s.Affinity = &corev1.Affinity{} },
	} {
		for _, migrates := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, vmi.RunAlways)
				w.vm.Spec.Template.Spec.Domain.CPU = &vmi.CPU{Sockets: 1}
				w.settle()
				w.run()
				if migrates {
					w.vmi.Status.SetCondition(vmi.Condition{Type: vmi.ConditionLiveMigratable, Status: corev1.ConditionTrue}, metav1.NewTime(w.now))
				}
				w.edit(func(s *vmi.VirtualMachineSpec) { edit(&s.Template.Spec) })
				w.settle()
				require.Equal(t, !migrates, w.vm.Status.Condition(vmi.ConditionRestartRequired) != nil)
			})
		}
	}
}

func TestAFailedStartIsCountedOnceAndForgottenWithItsStrategy(t *testing.T) {
	w := newWorld(t, vmi.RunAlways)
	w.settle()
	w.phase(vmi.PhaseFailed)
	w.step(1) // the status; then the process is killed
	first := w.vm.Status.StartFailure.DeepCopy()
	require.Equal(t, 1, first.ConsecutiveFailCount)
	w.now = w.now.Add(time.Second)
	w.settle()
	require.Equal(t, first, w.vm.Status.StartFailure)
	w.gone()
	require.Equal(t, vmi.StatusCrashLoopBackOff, w.vm.Status.PrintableStatus)
	w.edit(func(s *vmi.VirtualMachineSpec) { s.RunStrategy = new(vmi.RunHalted) })
	w.settle()
	require.Nil(t, w.vm.Status.StartFailure)
	require.Equal(t, vmi.StatusStopped, w.vm.Status.PrintableStatus)
}

// moves makes the VMI one whose migration ended then. Nil: it has not ended.
func moves(end *metav1.Time) func(*world) {
	return func(w *world) {
		w.vmi.Status.MigrationState = &vmi.MigrationState{StartTimestamp: &metav1.Time{Time: w.now}, EndTimestamp: end}
	}
}

// handedOver makes the VMI one of which nothing is sent yet.
func handedOver(w *world) { w.vmi.Status.MigrationState = &vmi.MigrationState{TargetNode: "node2"} }
