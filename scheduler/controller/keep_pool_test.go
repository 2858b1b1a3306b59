package controller

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podvisor/podvisor/internal/vmi/verb"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/pool"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

func TestADecisionAboutAPoolIsTheSameByWhatIsKept(t *testing.T) {
	t.Parallel()
	k := &keeper{}
	situations := map[string]int{}
	for seed := range uint64(worlds / 4) {
		w := newFilled(seed)
		whole := w.pool()
		kept := whole
		kept.Pool, kept.VMs = wholePool(reduced(whole.Pool, keepPool)), each(whole.VMs, keepVM)
		kept.Revisions, kept.Instances = each(whole.Revisions, keepRevision), map[string]*vmi.VirtualMachineInstance{}
		for name, i := range whole.Instances {
			kept.Instances[name] = reduced(i, k.instance)
		}
		want, got := pool.Decide(whole), pool.Decide(kept)
		for _, a := range want.Actions {
			situations[fmt.Sprintf("%T", a)]++
		}
		require.Equal(t, plannedForPool(t, whole, want), plannedForPool(t, kept, got), "seed %d", seed)
	}
	for _, a := range []scheduler.Action{
		scheduler.CreateVM{}, scheduler.ChangeVM{}, scheduler.RestartVM{}, scheduler.DeleteVM{}, scheduler.CreateRevision{}, scheduler.DeleteRevision{},
		scheduler.WriteStatus[*vmpool.VirtualMachinePool]{}, scheduler.Emit{},
	} {
		require.Greater(t, situations[fmt.Sprintf("%T", a)], worlds/200, "%T: too few situations are compared", a)
	}
}

// plannedForPool is the plan as what is sent.
func plannedForPool(t *testing.T, o pool.Observed, p scheduler.Plan) []string {
	t.Helper()
	out := []string{p.Recheck.String()}
	for _, a := range p.Actions {
		what := any(a)
		switch a := a.(type) {
		case scheduler.WriteStatus[*vmpool.VirtualMachinePool]:
			what = difference(t, o.Pool.Status, a.Object.Status)
		case scheduler.ChangeVM:
			what = []any{unchanged(a.From), entries("/labels", a.From.Labels, a.To.Labels), entries("/annotations", a.From.Annotations, a.To.Annotations), a.To.Spec}
		case scheduler.RestartVM:
			patches, err := verb.Restart(a.VM, a.Instance, o.Now)
			what = []any{patches, err != nil}
		case scheduler.DeleteVM:
			what = unchanged(a.VM)
		}
		raw, err := json.Marshal(what)
		require.NoError(t, err)
		out = append(out, fmt.Sprintf("%T %s", a, raw))
	}
	return out
}

// pool is what is observed of a pool, whose VMs have several templates.
func (w *filled) pool() pool.Observed {
	p := &vmpool.VirtualMachinePool{}
	w.fill(p)
	labels := map[string]string{"app": "web"}
	p.Namespace, p.Name, p.UID, p.DeletionTimestamp = "ns", "web", "pool", nil
	s := &p.Spec
	s.Replicas, s.Paused, s.Selector = new(w.Int32N(6)), w.IntN(6) == 0, &metav1.LabelSelector{MatchLabels: labels}
	s.MaxUnavailable = one(w, nil, new(intstr.FromInt32(2)))
	old := &vmpool.PoolSelectionPolicy{Selectors: &vmpool.PoolSelectors{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"old": "yes"}}}}
	s.UpdateStrategy = one(w, nil, &vmpool.PoolUpdateStrategy{Opportunistic: &vmpool.PoolOpportunisticUpdate{}}, &vmpool.PoolUpdateStrategy{Proactive: &vmpool.PoolProactiveUpdate{SelectionPolicy: old}})
	s.ScaleInStrategy = one(w, nil, &vmpool.PoolScaleInStrategy{Proactive: &vmpool.PoolProactiveScaleIn{SelectionPolicy: old}})
	s.Autohealing = one(w, nil, &vmpool.PoolAutohealing{})
	s.VirtualMachineTemplate.ObjectMeta = metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"a": "b"}}
	t := &s.VirtualMachineTemplate.Spec
	t.RunStrategy, t.Running, t.DataVolumeTemplates = new(one(w, vmi.RunAlways, vmi.RunAlways, vmi.RunManual)), nil, nil
	p.Status = vmpool.VirtualMachinePoolStatus{Replaced: one(w, nil, []vmpool.ReplacedVM{{Name: "web-1", UID: "former", Count: 1}})}
	raw, err := json.Marshal(p) // as an API server sends it
	sent := &vmpool.VirtualMachinePool{}
	if err == nil {
		err = json.Unmarshal(raw, sent)
	}
	if err != nil {
		panic(err)
	}
	r, err := pool.Revision(sent)
	if err != nil {
		panic(err)
	}
	former := &appsv1.ControllerRevision{ObjectMeta: *r.ObjectMeta.DeepCopy()}
	former.Name, former.UID = "former", "former"
	o := pool.Observed{Pool: sent, Instances: map[string]*vmi.VirtualMachineInstance{}, Taken: map[string]bool{"web-4": true}, Now: w.now}
	o.Revisions = one(w, nil, []*appsv1.ControllerRevision{r}, []*appsv1.ControllerRevision{r, former})
	for n := range 4 {
		o.VMs = append(o.VMs, w.member(&o, n, r.Name))
	}
	return o
}

// member is a VM of the pool with the ordinal n, which often has a VMI.
func (w *filled) member(o *pool.Observed, n int, revision string) *vmi.VirtualMachine {
	v := w.vms().VM
	v.Namespace, v.Name, v.UID, v.ResourceVersion = "ns", pool.Name(o.Pool, n), types.UID(fmt.Sprint("vm", n)), "1"
	v.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(o.Pool, vmpool.VirtualMachinePools.GroupVersionKind)}
	v.Labels[vmi.PoolRevisionLabel], v.Labels["old"] = one(w, revision, "before"), one(w, "yes", "no")
	v.Annotations[pool.StrategyAnnotation] = one(w, "Always", "Manual")
	s := &v.Status
	s.Ready, s.SnapshotInProgress, s.RestoreInProgress = w.IntN(3) > 0, one(w, nil, nil, new("s")), nil
	s.StartFailure = one(w, nil, nil, &vmi.StartFailure{ConsecutiveFailCount: 1 + w.IntN(4), LastFailedVMIUID: "x"})
	s.StateChangeRequests = one(w, nil, nil, nil, s.StateChangeRequests)
	s.Conditions = w.conditions(vmi.ConditionReady, vmi.ConditionFailure)
	s.PrintableStatus = one(w, vmi.StatusRunning, vmi.StatusStopped, vmi.StatusStarting)
	if w.IntN(2) == 0 { // it waits for its restart
		v.DeletionTimestamp, v.Labels[vmi.PoolRevisionLabel], v.Spec.RunStrategy = nil, revision, new(vmi.RunAlways)
		s.SnapshotInProgress, s.StartFailure, s.StateChangeRequests = nil, nil, nil
	} else if w.IntN(4) == 0 {
		return v
	}
	i := w.instance()
	i.Namespace, i.Name, i.Labels[vmi.PoolRevisionLabel] = v.Namespace, v.Name, one(w, v.Labels[vmi.PoolRevisionLabel], "before")
	i.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(v, vmi.VirtualMachines.GroupVersionKind)}
	if w.IntN(3) > 0 {
		i.Status.Phase, i.DeletionTimestamp, i.Status.MigrationState = vmi.PhaseRunning, nil, nil
	}
	o.Instances[v.Name] = i
	return v
}
