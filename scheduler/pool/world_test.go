package pool_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/pool"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// world is an API server with one pool and its namespace, and plays the loop of VMs.
type world struct {
	t         *testing.T
	pool      *vmpool.VirtualMachinePool
	vms       []*vmi.VirtualMachine
	vmis      map[string]*vmi.VirtualMachineInstance
	revisions []*appsv1.ControllerRevision
	taken     map[string]bool
	now       time.Time
	written   time.Time
	refusal   *vmi.Finding
	uids      int
	// broken are the memories of templates with which no VM starts.
	broken map[string]bool

	created, changed, restarted, deleted, statuses []string
	events                                         []scheduler.Emit
}

var labels = map[string]string{"app": "web"}

func newWorld(t *testing.T, n int32) *world {
	p := &vmpool.VirtualMachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "9c5b94b1-35ad-49bb-b118-8e8fc24abf80", Generation: 1}}
	p.Spec.Replicas = &n
	p.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	p.Spec.VirtualMachineTemplate = &vmpool.VirtualMachineTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: vmitest.NewVM(vmi.RunAlways, vmitest.WithMemory("64Mi")).Spec,
	}
	return &world{t: t, pool: p, now: time.Unix(1_700_000_000, 0), vmis: map[string]*vmi.VirtualMachineInstance{}, taken: map[string]bool{}, broken: map[string]bool{}}
}

// template gives the pool another template.
func (w *world) template(memory string) {
	w.pool.Spec.VirtualMachineTemplate.Spec = vmitest.NewVM(vmi.RunAlways, vmitest.WithMemory(memory)).Spec
}

func (w *world) observe() pool.Observed {
	o := pool.Observed{
		Pool: w.pool.DeepCopy(), Instances: map[string]*vmi.VirtualMachineInstance{}, Taken: map[string]bool{},
		Revisions: w.revisions, Refusal: w.refusal, StatusWritten: w.written, Now: w.now,
	}
	for name := range w.taken {
		o.Taken[name] = true
	}
	for _, v := range w.vms {
		o.Taken[v.Name] = true
		if metav1.IsControlledBy(v, w.pool) {
			o.VMs = append(o.VMs, v.DeepCopy())
		}
	}
	for name, i := range w.vmis {
		o.Taken[name], o.Instances[name] = true, i.DeepCopy()
	}
	return o
}

func (w *world) uid() types.UID {
	w.uids++
	return types.UID(fmt.Sprintf("uid-%03d", (w.uids*37)%1000)) // in no order
}

// act does at most so many of the actions.
func (w *world) act(p scheduler.Plan, most int) {
	for n, a := range p.Actions {
		if n == most {
			return
		}
		switch a := a.(type) {
		case scheduler.CreateRevision:
			require.Nil(w.t, w.revision(a.Revision.Name))
			a.Revision.UID = w.uid()
			w.revisions = append(w.revisions, a.Revision)
		case scheduler.DeleteRevision:
			w.revisions = slices.DeleteFunc(w.revisions, func(r *appsv1.ControllerRevision) bool { return r.UID == a.UID })
		case scheduler.CreateVM:
			require.NotNil(w.t, w.revision(a.VM.Labels[vmi.PoolRevisionLabel]), "the revision is made first")
			require.Nil(w.t, w.find(a.VM.Name))
			v := a.VM.DeepCopy()
			v.UID, v.CreationTimestamp = w.uid(), metav1.NewTime(w.now)
			w.vms = append(w.vms, v)
			w.created = append(w.created, v.Name)
		case scheduler.ChangeVM:
			v := w.find(a.From.Name)
			require.Equal(w.t, v.UID, a.From.UID)
			v.Spec, v.Labels, v.Annotations = a.To.Spec, a.To.Labels, a.To.Annotations
			v.Status.StartFailure = nil
			w.changed = append(w.changed, v.Name)
		case scheduler.RestartVM:
			v := w.find(a.VM.Name)
			v.Status.StateChangeRequests = []vmi.StateChangeRequest{{Action: vmi.StopRequest}, {Action: vmi.StartRequest}}
			w.restarted = append(w.restarted, v.Name)
		case scheduler.DeleteVM:
			v := w.find(a.VM.Name)
			if v == nil || v.UID != a.VM.UID {
				continue
			}
			v.DeletionTimestamp = &metav1.Time{Time: w.now}
			w.deleted = append(w.deleted, v.Name)
		case scheduler.WriteStatus[*vmpool.VirtualMachinePool]:
			w.pool.Status, w.written = *a.Object.Status.DeepCopy(), w.now
			w.statuses = append(w.statuses, a.String())
		case scheduler.Emit:
			w.events = append(w.events, a)
		default:
			w.t.Fatalf("action %T", a)
		}
	}
}

func (w *world) find(name string) *vmi.VirtualMachine {
	i := slices.IndexFunc(w.vms, func(v *vmi.VirtualMachine) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return w.vms[i]
}

func (w *world) revision(name string) *appsv1.ControllerRevision {
	i := slices.IndexFunc(w.revisions, func(r *appsv1.ControllerRevision) bool { return r.Name == name })
	if i < 0 {
		return nil
	}
	return w.revisions[i]
}

// step decides once and does what was decided, and the VMs do their next step.
func (w *world) step() {
	w.act(pool.Decide(w.observe()), -1)
	w.play()
	w.now = w.now.Add(2 * time.Second)
}

// settle decides until nothing changes for a while.
func (w *world) settle() {
	w.t.Helper()
	quiet := 0
	for range 400 {
		before := fmt.Sprint(w.created, w.changed, w.restarted, w.deleted, w.pool.Status)
		w.step()
		quiet++
		if before != fmt.Sprint(w.created, w.changed, w.restarted, w.deleted, w.pool.Status) {
			quiet = 0
		}
		if quiet == 5 {
			return
		}
	}
	w.t.Fatal("the pool does not settle")
}

// play is a step of each VM: it is gone, its VMI ends, starts or is ready. The status of a VM
// says what there was one step before: another loop writes it.
func (w *world) play() {
	for _, v := range slices.Clone(w.vms) {
		i := w.vmis[v.Name]
		stop := len(v.Status.StateChangeRequests) > 0 && v.Status.StateChangeRequests[0].Action == vmi.StopRequest
		ready := i != nil && i.Status.Condition(vmi.ConditionReady) != nil
		switch {
		case i != nil && (v.DeletionTimestamp != nil || stop || v.Spec.Strategy() == vmi.RunHalted):
			w.stop(v, i)
		case v.DeletionTimestamp != nil:
			w.vms = slices.DeleteFunc(w.vms, func(x *vmi.VirtualMachine) bool { return x == v })
		case i == nil && v.Spec.Strategy() == vmi.RunAlways:
			memory, phase := v.Spec.Template.Spec.Domain.Memory.Guest.String(), vmi.PhaseRunning
			if w.broken[memory] {
				phase = vmi.PhaseScheduling
			}
			i = vmitest.New(vmitest.WithName(v.Name), vmitest.WithPhase(phase), vmitest.WithMemory(memory))
			i.Labels, i.UID = v.Spec.Template.ObjectMeta.Labels, w.uid()
			i.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(v, vmi.VirtualMachines.GroupVersionKind)}
			w.vmis[v.Name], v.Status.PrintableStatus = i, vmi.StatusRunning
			continue
		case i != nil && i.Status.Condition(vmi.ConditionSynchronized) != nil: // it waits
		case i != nil && w.broken[i.Spec.Domain.Memory.Guest.String()]:
			f := v.Status.StartFailure
			if f == nil {
				f = &vmi.StartFailure{}
				v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Message: "no such disk"}, metav1.NewTime(w.now))
			}
			v.Status.StartFailure = &vmi.StartFailure{ConsecutiveFailCount: f.ConsecutiveFailCount + 1}
			delete(w.vmis, v.Name)
		case i != nil:
			i.Status.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionTrue}, metav1.NewTime(w.now))
			v.Status.StartFailure = nil
		}
		v.Status.Ready = ready
	}
}

// waitsForItsImage has the VMI of the VM not start, since there is no such image.
func (w *world) waitsForItsImage(name string) {
	i := w.vmis[name]
	i.Status = vmi.VirtualMachineInstanceStatus{Phase: vmi.PhaseScheduling}
	i.Status.SetCondition(vmi.Condition{
		Type: vmi.ConditionSynchronized, Status: corev1.ConditionFalse, Reason: "ImagePullBackOff", Message: "there is no such image",
	}, metav1.NewTime(w.now))
}

// stop is a step of a VM to its end: it is seen, its VMI is deleted, and then gone.
func (w *world) stop(v *vmi.VirtualMachine, i *vmi.VirtualMachineInstance) {
	switch {
	case v.Status.PrintableStatus != vmi.StatusStopping:
		v.Status.PrintableStatus = vmi.StatusStopping
	case i.DeletionTimestamp == nil:
		i.DeletionTimestamp = &metav1.Time{Time: w.now}
	default:
		delete(w.vmis, v.Name)
		v.Status.StateChangeRequests, v.Status.PrintableStatus = nil, vmi.StatusStopped
	}
}

// down says that the guest of the VM is missing, ends, or is not ready.
func (w *world) down(v *vmi.VirtualMachine) bool {
	i := w.vmis[v.Name]
	return i == nil || i.DeletionTimestamp != nil || i.Status.Condition(vmi.ConditionReady) == nil
}

// names are those of the VMs.
func (w *world) names() []string {
	var out []string
	for _, v := range w.vms {
		out = append(out, v.Name)
	}
	slices.Sort(out)
	return out
}

// current are the names of the VMs that run with the present template.
func (w *world) current() []string {
	r, err := pool.Revision(w.pool)
	require.NoError(w.t, err)
	var out []string
	for _, v := range w.vms {
		i := w.vmis[v.Name]
		if i != nil && i.Labels[vmi.PoolRevisionLabel] == r.Name && v.Labels[vmi.PoolRevisionLabel] == r.Name {
			out = append(out, v.Name)
		}
	}
	slices.Sort(out)
	return out
}
