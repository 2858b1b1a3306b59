package vm_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/vm"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// world is an API server with one VM, and everything around it that changes: users,
// the VMI's own controllers, and the garbage collector.
type world struct {
	t         *testing.T
	vm        *vmi.VirtualMachine
	vmi       *vmi.VirtualMachineInstance
	revisions []*appsv1.ControllerRevision
	now       time.Time
	refusal   *vmi.Finding
	// objects are instance types, and sizes what holds them.
	objects []vmi.Object
	sizes   []*appsv1.ControllerRevision
	claims  map[string]*corev1.PersistentVolumeClaim

	made   int // VMIs so far
	writes []string
}

func newWorld(t *testing.T, s vmi.RunStrategy) *world {
	v := vmitest.NewVM(s, vmitest.WithMasquerade("default"))
	v.Namespace, v.Name, v.UID, v.Generation = "ns", "vm", "vm-uid", 1
	v.Finalizers = []string{vmi.VMFinalizer}
	v.Status.PrintableStatus = vmi.StatusStopped
	return &world{t: t, vm: v, now: time.Unix(1_700_000_000, 0)}
}

func (w *world) observe() vm.Observed {
	o := vm.Observed{VM: w.vm.DeepCopy(), Revisions: w.revisions, Refusal: w.refusal, Claims: w.claims, Now: w.now, LiveUpdate: true}
	if w.vmi != nil {
		o.VMI = w.vmi.DeepCopy()
	}
	o.Sizes = w.sizes
	var err error
	o.Found, err = w.lookup().Find("ns", o.Sought())
	require.NoError(w.t, err)
	o.Renamed, err = w.lookup().Find("ns", o.SoughtRenamed())
	require.NoError(w.t, err)
	return o
}

// step decides and does at most so many of the actions; it returns how many there
// were.
func (w *world) step(most int) int {
	actions := w.decide().Actions
	for i, a := range actions {
		if i == most || !w.do(a) {
			break
		}
	}
	return len(actions)
}

// do does the action as the API server does it; false: it was refused.
func (w *world) do(a scheduler.Action) bool {
	switch a := a.(type) {
	case scheduler.CreateInstance:
		w.writes = append(w.writes, "create vmi")
		if w.vmi != nil {
			return false
		}
		w.made++
		w.vmi = a.Instance.DeepCopy()
		w.vmi.CreationTimestamp = metav1.NewTime(w.now.Truncate(time.Second))
		w.vmi.UID = types.UID(string(rune('a'+w.made%26)) + "-uid")
		require.NotNil(w.t, w.revision(w.vmi.RevisionGeneration()), "a VMI is made after its revision")
	case scheduler.DeleteInstance:
		w.writes = append(w.writes, "delete vmi")
		if w.vmi != nil && w.vmi.UID == a.Instance.UID && w.vmi.DeletionTimestamp == nil {
			w.vmi.DeletionTimestamp = &metav1.Time{Time: w.now}
		}
	case scheduler.AdoptInstance:
		w.writes = append(w.writes, "adopt vmi")
		w.vmi.OwnerReferences = append(w.vmi.OwnerReferences, *metav1.NewControllerRef(w.vm, vmi.VirtualMachines.GroupVersionKind))
	case scheduler.ChangeInstance:
		w.writes = append(w.writes, "change vmi")
		for i := range w.vmi.Spec.Domain.Devices.Interfaces {
			n := &w.vmi.Spec.Domain.Devices.Interfaces[i]
			if to, ok := a.Links[n.Name]; ok {
				n.State = to
			}
		}
		for k, v := range a.Annotations {
			w.vmi.Annotations[k] = v
		}
	case scheduler.CreateRevision:
		if vmi.StartedVM(a.Revision.Name) == "" {
			w.writes = append(w.writes, "create size")
			w.sizes = append(w.sizes, a.Revision)
			break
		}
		w.writes = append(w.writes, "create revision")
		w.revisions = append(w.revisions, a.Revision)
	case scheduler.DeleteRevision:
		w.writes = append(w.writes, "delete revision")
		w.revisions = slices.DeleteFunc(w.revisions, func(r *appsv1.ControllerRevision) bool { return r.Name == a.Name })
	case scheduler.SetRunStrategy:
		w.writes = append(w.writes, "set strategy")
		w.edit(func(s *vmi.VirtualMachineSpec) { s.RunStrategy = new(a.To) })
	case scheduler.WriteStatus[*vmi.VirtualMachine]:
		w.writes = append(w.writes, "status "+string(a.Object.Status.PrintableStatus))
		w.vm.Status = *a.Object.Status.DeepCopy()
	case scheduler.AddFinalizer:
		w.writes = append(w.writes, "add finalizer")
		w.vm.Finalizers = append(w.vm.Finalizers, vmi.VMFinalizer)
	case scheduler.RemoveFinalizer:
		w.writes = append(w.writes, "remove finalizer")
		w.vm.Finalizers = slices.DeleteFunc(w.vm.Finalizers, func(f string) bool { return f == vmi.VMFinalizer })
		if len(w.vm.Finalizers) == 0 && w.vm.DeletionTimestamp != nil {
			w.vm = nil
		}
	case scheduler.Emit:
	default:
		w.t.Fatalf("action %T", a)
	}
	return true
}

func (w *world) revision(generation int64) *appsv1.ControllerRevision {
	for _, r := range w.revisions {
		if r.Revision == generation {
			return r
		}
	}
	return nil
}

// settle decides until there is nothing to do, also in the next seconds.
func (w *world) settle() {
	w.t.Helper()
	w.settleWithin(2 * time.Second)
}

// settleWithin decides until there is nothing to do for so long.
func (w *world) settleWithin(d time.Duration) {
	w.t.Helper()
	for range 20 {
		switch p := w.decide(); {
		case len(p.Actions) > 0:
			w.step(100)
		case p.Recheck == 0 || p.Recheck > d:
			return
		default:
			w.now = w.now.Add(p.Recheck)
		}
	}
	w.t.Fatalf("does not settle: %v", w.writes)
}

// decide is what is to be done now.
func (w *world) decide() scheduler.Plan {
	if w.vm == nil {
		return scheduler.Plan{}
	}
	return vm.Decide(w.observe())
}

// edit is what a user does to the spec.
func (w *world) edit(f func(*vmi.VirtualMachineSpec)) {
	f(&w.vm.Spec)
	w.vm.Generation++
}

// request is a call of a user.
func (w *world) request(a vmi.StateChange, data map[string]string) {
	r := vmi.StateChangeRequest{Action: a, Data: data}
	if a == vmi.StopRequest && w.vmi != nil {
		r.UID = new(w.vmi.UID)
	}
	w.vm.Status.StateChangeRequests = append(w.vm.Status.StateChangeRequests, r)
}

// phase is what the VMI's controllers write.
func (w *world) phase(p vmi.Phase) {
	s := &w.vmi.Status
	s.SetPhase(p, metav1.NewTime(w.now))
	if s.VirtualMachineRevisionName == "" {
		s.VirtualMachineRevisionName = vmi.StartRevision("vm-uid", w.vmi.RevisionGeneration())
	}
	c := vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Reason: vmi.ReasonGuestNotRunning, Message: string(p)}
	if p == vmi.PhaseRunning {
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, "", ""
	}
	s.SetCondition(c, metav1.NewTime(w.now))
}

// run is the whole way of a VMI to Running.
func (w *world) run() {
	for _, p := range []vmi.Phase{vmi.PhaseScheduling, vmi.PhaseScheduled, vmi.PhaseRunning} {
		w.phase(p)
		w.settle()
	}
}

// quick is the way of a VMI that runs within a second.
func (w *world) quick() {
	for _, p := range []vmi.Phase{vmi.PhaseScheduling, vmi.PhaseScheduled, vmi.PhaseRunning} {
		w.phase(p)
		w.settleWithin(0)
	}
}

// gone is the end of a VMI that is deleted.
func (w *world) gone() {
	w.t.Helper()
	w.goneWithin(2 * time.Second)
}

func (w *world) goneWithin(d time.Duration) {
	w.t.Helper()
	require.NotNil(w.t, w.vmi)
	require.NotNil(w.t, w.vmi.DeletionTimestamp, "the VMI is deleted")
	if !w.vmi.Status.Phase.Final() {
		w.phase(vmi.PhaseSucceeded)
		w.settleWithin(d)
	}
	w.vmi = nil
	w.settleWithin(d)
}
