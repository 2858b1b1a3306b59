package controller

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/scheduler/replicaset"
	"github.com/podvisor/podvisor/scheduler/vm"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// worlds is how many situations decisions are compared in.
const worlds = 300

// A decision that reads what is dropped differs: in the objects every field has a value.
func TestADecisionIsTheSameByWhatIsKept(t *testing.T) {
	t.Parallel()
	k := &keeper{}
	situations := map[string]int{}
	for seed := range uint64(worlds) {
		w := newFilled(seed)
		whole := w.instances()
		kept := whole
		kept.VMI = reduced(whole.VMI, k.instance)
		kept.Pods.Active = reduced(whole.Pods.Active, k.pod)
		kept.Pods.Stray = each(whole.Pods.Stray, k.pod)
		kept.Pods.Targets = each(whole.Pods.Targets, k.pod)
		kept.Former = each(whole.Former, k.pod)
		kept.Node.Object, kept.Node.Handler = reduced(whole.Node.Object, keepNode), reduced(whole.Node.Handler, k.pod)
		kept.Neighbours = each(whole.Neighbours, k.instance)
		kept.Sharers = []instance.Sharer{{VMI: reduced(whole.Sharers[0].VMI, k.instance), Pod: reduced(whole.Sharers[0].Pod, k.pod)}}
		kept.Claims = map[string]*corev1.PersistentVolumeClaim{}
		for name, c := range whole.Claims {
			kept.Claims[name] = reduced(c, keepClaim)
		}
		want, got := instance.Decide(whole), instance.Decide(kept)
		for _, a := range want.Actions {
			situations[fmt.Sprintf("%T", a)]++
		}
		require.Equal(t, planned(t, whole.VMI, whole.VMI.Status, want), planned(t, kept.VMI, kept.VMI.Status, got), "seed %d", seed)

		profile := defaults.Profile{EvictionStrategy: vmi.EvictionLiveMigrate}
		require.Equal(t, instance.Eviction(whole.VMI, whole.Pods.Active, profile), instance.Eviction(kept.VMI, kept.Pods.Active, profile), "seed %d", seed)
		require.Equal(t, instance.PodWaitsSilently(whole.VMI, whole.Pods.Active), instance.PodWaitsSilently(kept.VMI, kept.Pods.Active), "seed %d", seed)
		require.Equal(t, instance.ClaimNames(whole.VMI), instance.ClaimNames(kept.VMI), "seed %d", seed)
		require.Equal(t, indexed(t, InstanceIndexers(), whole.VMI), indexed(t, InstanceIndexers(), kept.VMI), "seed %d", seed)
		require.Equal(t, indexed(t, podIndexers(), whole.Pods.Active), indexed(t, podIndexers(), kept.Pods.Active), "seed %d", seed)
		require.Equal(t, pod.RoleFor(whole.Pods.Active), pod.RoleFor(kept.Pods.Active), "seed %d", seed)
		require.Equal(t, stuck(whole.VMI), stuck(kept.VMI), "seed %d", seed)
		require.Equal(t, isReady(whole.Node.Handler), isReady(kept.Node.Handler), "seed %d", seed)

		// A pod is rendered by what is kept, or not at all.
		if facts := (pod.Facts{Claims: whole.Claims}); !isReduced(whole.VMI) {
			a, err := pod.Render(whole.VMI, pod.Config{Launcher: pod.Launcher{Image: "x"}, Facts: facts})
			b, err2 := pod.Render(kept.VMI, pod.Config{Launcher: pod.Launcher{Image: "x"}, Facts: pod.Facts{Claims: kept.Claims}})
			require.Equal(t, err, err2)
			require.Equal(t, a, b)
		}
	}
	for _, a := range []scheduler.Action{
		scheduler.AddFinalizer{}, scheduler.RemoveFinalizer{}, scheduler.SetLabel{}, scheduler.RemoveLabel{}, scheduler.DeletePod{}, scheduler.SetPodCondition{},
		scheduler.WriteStatus[*vmi.VirtualMachineInstance]{}, scheduler.Emit{},
	} {
		require.Greater(t, situations[fmt.Sprintf("%T", a)], worlds/300, "%T: too few situations are compared", a)
	}
}

func TestADecisionAboutAVMIsTheSameByWhatIsKept(t *testing.T) {
	t.Parallel()
	k := &keeper{}
	situations := map[string]int{}
	for seed := range uint64(worlds) {
		w := newFilled(seed)
		whole := w.vms()
		kept := whole
		kept.VM, kept.VMI = wholeVM(reduced(whole.VM, keepVM)), reduced(whole.VMI, k.instance)
		kept.Revisions = each(whole.Revisions, keepRevision)
		if r := kept.Compared(); r != nil {
			for i := range kept.Revisions {
				if kept.Revisions[i] == r {
					kept.Revisions[i] = whole.Revisions[i] // as it is read
				}
			}
		}
		kept.Claims = map[string]*corev1.PersistentVolumeClaim{}
		for name, c := range whole.Claims {
			kept.Claims[name] = reduced(c, keepClaim)
		}
		want, got := vm.Decide(whole), vm.Decide(kept)
		for _, a := range want.Actions {
			situations[fmt.Sprintf("%T", a)]++
		}
		require.Equal(t, planned(t, whole.VM, whole.VM.Status, want), planned(t, kept.VM, kept.VM.Status, got), "seed %d", seed)
		require.Equal(t, indexed(t, VMIndexers(), whole.VM), indexed(t, VMIndexers(), reduced(whole.VM, keepVM)), "seed %d", seed)
	}
	for _, a := range []scheduler.Action{
		scheduler.CreateInstance{}, scheduler.DeleteInstance{}, scheduler.ChangeInstance{}, scheduler.DeleteRevision{}, scheduler.WriteStatus[*vmi.VirtualMachine]{},
	} {
		require.Greater(t, situations[fmt.Sprintf("%T", a)], worlds/300, "%T: too few situations are compared", a)
	}
}

func TestADecisionAboutASetIsTheSameByWhatIsKept(t *testing.T) {
	t.Parallel()
	k := &keeper{}
	for seed := range uint64(worlds / 4) {
		w := newFilled(seed)
		s := &vmi.VirtualMachineInstanceReplicaSet{}
		w.fill(s)
		s.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		s.Spec.Replicas, s.DeletionTimestamp = new(int32(2)), nil
		var all []*vmi.VirtualMachineInstance
		for i := range 3 {
			v := w.instance()
			v.Namespace, v.Name, v.Labels["app"] = s.Namespace, fmt.Sprint("v", i), "web"
			v.Annotations[replicaset.FailuresAnnotation], v.Annotations[replicaset.TemplateAnnotation] = fmt.Sprint(w.IntN(3)), one(w, "x", "")
			v.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s, vmi.VirtualMachineInstanceReplicaSets.GroupVersionKind)}
			all = append(all, v)
		}
		whole := replicaset.Observed{Set: s, Instances: all, Now: w.now}
		kept := whole
		kept.Set, kept.Instances = wholeSet(reduced(s, keepSet)), each(all, k.instance)
		require.Equal(t, planned(t, s, s.Status, replicaset.Decide(whole)), planned(t, kept.Set, kept.Set.Status, replicaset.Decide(kept)), "seed %d", seed)
	}
}

// What is kept once is kept again: an informer may ask twice.
func TestWhatIsKeptIsKeptAgain(t *testing.T) {
	t.Parallel()
	k := &keeper{}
	for seed := range uint64(50) {
		w := newFilled(seed)
		v, p := reduced(w.instance(), k.instance), reduced(w.pod(w.instance()), k.pod)
		require.Equal(t, v, reduced(v, k.instance))
		require.Equal(t, p, reduced(p, k.pod))
	}
}

func TestAVMIThatWasHandedOverRendersNoPodForAReview(t *testing.T) {
	t.Parallel()
	w := newFilled(1)
	v := w.instance()
	for _, p := range []vmi.Phase{vmi.PhaseScheduled, vmi.PhaseRunning, vmi.PhaseSucceeded, vmi.PhaseFailed, vmi.PhaseUnknown} {
		v.Status.Phase = p
		kept := reduced(v, (&keeper{}).instance)
		require.True(t, isReduced(kept), p)
		require.Empty(t, kept.Spec.Domain.Memory, p)
	}
	for _, p := range []vmi.Phase{vmi.PhaseUnset, vmi.PhasePending, vmi.PhaseScheduling} {
		v.Status.Phase = p
		kept := reduced(v, (&keeper{}).instance)
		require.False(t, isReduced(kept), p)
		require.Equal(t, v.Spec, kept.Spec, p)
	}
}

// planned is the plan as what is sent: of a status the difference alone.
func planned[T vmi.Object](t *testing.T, o T, status any, p scheduler.Plan) string {
	t.Helper()
	out := []any{p.Recheck.String()}
	for _, a := range p.Actions {
		what := any(a)
		switch a := a.(type) {
		case scheduler.WriteStatus[*vmi.VirtualMachineInstance]:
			what = difference(t, status, a.Object.Status)
		case scheduler.WriteStatus[*vmi.VirtualMachine]:
			what = difference(t, status, a.Object.Status)
		case scheduler.WriteStatus[*vmi.VirtualMachineInstanceReplicaSet]:
			what = difference(t, status, a.Object.Status)
		case scheduler.AdoptInstance:
			what = []any{a.Instance.UID, a.Instance.ResourceVersion, a.Instance.OwnerReferences, vmi.StartGeneration(a.Instance)}
		case scheduler.ReleaseInstance:
			what = []any{a.Instance.UID, a.Instance.ResourceVersion, a.Instance.OwnerReferences}
		case scheduler.DeleteInstance:
			what = []any{a.Instance.UID, a.Instance.ResourceVersion}
		case scheduler.ChangeInstance:
			var names []string // an interface is changed by its place
			for _, i := range a.Instance.Spec.Domain.Devices.Interfaces {
				names = append(names, i.Name)
			}
			what = []any{a.Instance.UID, a.Instance.ResourceVersion, a.Annotations, a.Links, names}
		case scheduler.AddFinalizer, scheduler.RemoveFinalizer:
			what = []any{a, o.GetFinalizers()}
		}
		raw, err := json.Marshal(what)
		require.NoError(t, err)
		out = append(out, fmt.Sprintf("%T", a), string(raw))
	}
	return fmt.Sprint(out...)
}

// difference is the merge patch of a status.
func difference(t *testing.T, from, to any) string {
	t.Helper()
	a, err := json.Marshal(from)
	require.NoError(t, err)
	b, err := json.Marshal(to)
	require.NoError(t, err)
	patch, err := jsonpatch.CreateMergePatch(a, b)
	require.NoError(t, err)
	return string(patch)
}

func indexed(t *testing.T, indexers cache.Indexers, o any) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for name, f := range indexers {
		values, err := f(o)
		require.NoError(t, err)
		out[name] = values
	}
	return out
}

// reduced is a copy of the object of which the rest was dropped.
func reduced[T interface {
	comparable
	runtime.Object
}](o T, keep func(T)) T {
	var none T
	if o == none {
		return none
	}
	c := o.DeepCopyObject().(T)
	keep(c)
	return c
}

func each[T interface {
	comparable
	runtime.Object
}](all []T, keep func(T)) []T {
	var out []T
	for _, o := range all {
		out = append(out, reduced(o, keep))
	}
	return out
}

// filled makes objects in which every field has a value.
type filled struct {
	*rand.Rand
	now time.Time
}

func newFilled(seed uint64) *filled {
	return &filled{rand.New(rand.NewPCG(seed, 7)), time.Unix(1_700_000_000, 0)}
}

// one is one of the values.
func one[T any](w *filled, all ...T) T { return all[w.IntN(len(all))] }

// fill gives every field of the object a value.
func (w *filled) fill(o any) { w.value(reflect.ValueOf(o).Elem()) }

func (w *filled) value(v reflect.Value) {
	switch v.Interface().(type) {
	case resource.Quantity:
		v.Set(reflect.ValueOf(*resource.NewQuantity(w.Int64N(1<<33), resource.BinarySI)))
		return
	case metav1.Time:
		v.Set(reflect.ValueOf(metav1.NewTime(w.now.Add(-time.Duration(w.IntN(100)) * time.Second))))
		return
	case intstr.IntOrString:
		v.Set(reflect.ValueOf(intstr.FromInt32(w.Int32N(100))))
		return
	case runtime.RawExtension, metav1.FieldsV1:
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(one(w, "a", "b", "c", "True", "False", "ns/net"))
	case reflect.Bool:
		v.SetBool(w.IntN(2) == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(w.Int64N(3))
	case reflect.Uint, reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(w.Uint64N(3))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		w.value(v.Elem())
	case reflect.Slice:
		n := 1 + w.IntN(2)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			w.value(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		w.value(key)
		w.value(value)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				w.value(v.Field(i))
			}
		}
	}
}

var phases = []vmi.Phase{
	vmi.PhaseUnset, vmi.PhasePending, vmi.PhaseScheduling, vmi.PhaseScheduled, vmi.PhaseRunning, vmi.PhaseRunning, vmi.PhaseSucceeded, vmi.PhaseFailed, vmi.PhaseUnknown,
}

// instance is a VMI in any phase, with volumes in claims and others.
func (w *filled) instance() *vmi.VirtualMachineInstance {
	v := &vmi.VirtualMachineInstance{}
	w.fill(v)
	v.UID, v.ResourceVersion, v.Finalizers = types.UID(one(w, "a", "b")), "1", one(w, []string{vmi.Finalizer}, []string{vmi.Finalizer, "other"}, []string{"other"}, nil)
	v.Annotations[corev1.LastAppliedConfigAnnotation] = "{}"
	v.Labels[vmi.NodeNameLabel] = one(w, "a", "b")
	if w.IntN(2) == 0 {
		v.Labels[vmi.OutdatedLauncherLabel] = ""
	}
	if w.IntN(2) == 0 {
		v.Annotations[vmi.EvictionSourceAnnotation] = vmi.EvictionByDescheduler
	}
	if w.IntN(2) == 0 {
		v.DeletionTimestamp = nil
	}
	s := &v.Status
	s.Phase, s.NodeName = one(w, phases...), one(w, "a", "b")
	s.ActivePods = map[types.UID]string{types.UID(one(w, "pod", "other")): s.NodeName}
	s.LauncherContainerImageVersion = one(w, "x", "y", "")
	if w.IntN(2) == 0 {
		s.MigrationState = nil
	}
	s.Conditions = w.conditions(vmi.ConditionReady, vmi.ConditionSynchronized, vmi.ConditionPaused, vmi.ConditionDisruptionTarget, vmi.ConditionDuplicateMACAddress, vmi.ConditionLiveMigratable, vmi.ConditionEvictionRequested)
	s.PhaseTransitionTimestamps = nil
	for _, p := range []vmi.Phase{vmi.PhaseRunning, s.Phase} {
		if w.IntN(2) == 0 {
			s.PhaseTransitionTimestamps = append(s.PhaseTransitionTimestamps, vmi.PhaseTransitionTimestamp{Phase: p, PhaseTransitionTimestamp: w.ago()})
		}
	}
	v.Spec.StartStrategy = one(w, new(vmi.StartPaused), nil)
	v.Spec.EvictionStrategy = one(w, new(vmi.EvictionExternal), new(vmi.EvictionNone), nil)
	v.Spec.Volumes = []vmi.Volume{w.volume("a"), w.volume("b"), w.volume("c")}
	for i := range v.Spec.Volumes {
		if w.IntN(2) == 0 {
			v.Spec.Domain.Devices.Disks = append(v.Spec.Domain.Devices.Disks, vmi.Disk{Name: v.Spec.Volumes[i].Name, Shareable: new(w.IntN(2) == 0)})
		}
	}
	for i := range v.Spec.Domain.Devices.Interfaces {
		if w.IntN(2) == 0 {
			v.Spec.Domain.Devices.Interfaces[i].InterfaceBinding = vmi.InterfaceBinding{Masquerade: &vmi.InterfaceMasquerade{}}
		}
	}
	return v
}

func (w *filled) volume(name string) vmi.Volume {
	var all, out vmi.VolumeSource
	w.fill(&all)
	kinds := reflect.TypeOf(out)
	i := one(w, 0, 1, 1, 2, 5, w.IntN(kinds.NumField()))
	reflect.ValueOf(&out).Elem().Field(i).Set(reflect.ValueOf(all).Field(i))
	return vmi.Volume{Name: name, VolumeSource: out}
}

func (w *filled) ago() metav1.Time {
	return metav1.NewTime(w.now.Add(-one(w, time.Second, 10*time.Second, time.Minute, time.Hour)))
}

func (w *filled) conditions(types ...vmi.ConditionType) []vmi.Condition {
	var out []vmi.Condition
	for _, t := range types {
		if w.IntN(2) == 0 {
			out = append(out, vmi.Condition{
				Type: t, Status: one(w, corev1.ConditionTrue, corev1.ConditionFalse), LastTransitionTime: w.ago(), Message: "m",
				Reason: one(w, "", vmi.ReasonNodeNotReady, vmi.ReasonGuestNotRunning, "ErrImagePull", vmi.ReasonEvicted, vmi.ReasonPodDeleted),
			})
		}
	}
	return out
}

// pod is a pod of the VMI, or nearly.
func (w *filled) pod(v *vmi.VirtualMachineInstance) *corev1.Pod {
	p := &corev1.Pod{}
	w.fill(p)
	p.Namespace, p.Name, p.UID, p.ResourceVersion = v.Namespace, instance.ActivePodName(v), types.UID(one(w, "pod", "other")), "1"
	p.Labels = map[string]string{vmi.AppLabel: vmi.LauncherApp, vmi.CreatedByLabel: one(w, string(v.UID), "x"), "app": "web"}
	if w.IntN(4) == 0 {
		p.Labels[vmi.MigrationJobLabel] = "m"
	}
	p.Annotations[vmi.DomainAnnotation], p.Annotations[vmi.MigrationJobAnnotation] = v.Name, "m"
	p.Annotations["kubevirt.io/memory-overhead-bytes"] = fmt.Sprint(w.IntN(1 << 20))
	p.Annotations["k8s.v1.cni.cncf.io/network-status"] = `[{"name":"x","interface":"eth0","ips":["10.0.0.1"],"default":true}]`
	p.OwnerReferences = one(w, []metav1.OwnerReference{*metav1.NewControllerRef(v, vmi.VirtualMachineInstances.GroupVersionKind)}, nil)
	if w.IntN(3) > 0 {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = nil, nil
	}
	p.Spec.NodeName, p.Spec.SchedulerName = one(w, v.Status.NodeName, "a", ""), one(w, corev1.DefaultSchedulerName, "mine")
	p.Spec.NodeSelector = map[string]string{vmi.CPUModelLabelPrefix + "x": "true", "zone": "a"}
	p.Spec.Containers = []corev1.Container{{Name: "sidecar", Image: "y"}, {Name: vmi.ComputeContainer, Image: one(w, "x", "y")}}
	p.Spec.Containers[1].StartupProbe = one(w, nil, &corev1.Probe{PeriodSeconds: 1})
	p.Spec.Containers[1].ReadinessProbe = one(w, nil, &corev1.Probe{PeriodSeconds: 2})
	p.Spec.ReadinessGates = one(w, []corev1.PodReadinessGate{{ConditionType: vmi.PodConditionUnpaused}}, nil,
		[]corev1.PodReadinessGate{{ConditionType: vmi.PodConditionUnpaused}, {ConditionType: "mine"}})
	s := &p.Status
	s.Phase, s.Reason = one(w, corev1.PodPending, corev1.PodRunning, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed), one(w, "", "", "", "NodeLost", "Evicted", "UnexpectedAdmissionError")
	s.Conditions = nil
	for _, t := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReady, corev1.ContainersReady, corev1.PodInitialized, corev1.DisruptionTarget, vmi.PodConditionUnpaused, "mine"} {
		if w.IntN(3) > 0 {
			s.Conditions = append(s.Conditions, corev1.PodCondition{
				Type: t, Status: one(w, corev1.ConditionTrue, corev1.ConditionFalse), LastTransitionTime: w.ago(), LastProbeTime: w.ago(), Message: "m",
				Reason: one(w, "", corev1.PodReasonUnschedulable, corev1.PodReasonPreemptionByScheduler, "DeletionByPodGC"),
			})
		}
	}
	s.InitContainerStatuses = []corev1.ContainerStatus{w.container("init"), w.container("init2")}
	s.ContainerStatuses = one(w, nil, []corev1.ContainerStatus{w.container("sidecar"), w.container(vmi.ComputeContainer)}, []corev1.ContainerStatus{w.container(vmi.ComputeContainer)})
	return p
}

func (w *filled) container(name string) corev1.ContainerStatus {
	var s corev1.ContainerStatus
	w.fill(&s)
	s.Name, s.Image = name, one(w, "x", "demo")
	all, last := s.State, s.LastTerminationState
	s.State, s.LastTerminationState = corev1.ContainerState{}, corev1.ContainerState{}
	if w.IntN(4) == 0 {
		s.LastTerminationState.Terminated = last.Terminated
	}
	switch w.IntN(5) {
	case 0:
		s.State.Waiting = all.Waiting
		s.State.Waiting.Reason = one(w, "ErrImagePull", "ContainerCreating", "")
	case 1, 2:
		s.State.Running = all.Running
	case 3:
		s.State.Terminated = all.Terminated
		t := s.State.Terminated
		t.ExitCode, t.Reason = one(w, int32(0), 1, 255), one(w, "Completed", "Error", "Unknown", "OOMKilled", "ContainerStatusUnknown")
		t.Message = one(w, "", `{"reason":"Crashed","message":"x"}`, "Crashed: x", "exec format error")
	}
	return s
}

func (w *filled) claims(names []string) map[string]*corev1.PersistentVolumeClaim {
	out := map[string]*corev1.PersistentVolumeClaim{}
	for _, n := range names {
		if w.IntN(4) == 0 {
			out[n] = nil
			continue
		}
		c := &corev1.PersistentVolumeClaim{}
		w.fill(c)
		c.Name = n
		c.Annotations["volume.kubernetes.io/selected-node"] = one(w, "n1", "")
		c.Annotations["cdi.kubevirt.io/storage.preallocation"] = one(w, "true", "false")
		c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(w.Int64N(1<<40), resource.BinarySI)}
		c.Status.Phase = one(w, corev1.ClaimBound, corev1.ClaimPending)
		out[n] = c
	}
	return out
}

// instances is what is observed of a VMI.
func (w *filled) instances() instance.Observed {
	v := w.instance()
	p := w.pod(v)
	p.UID = one(w, types.UID("pod"), p.UID)
	if w.IntN(2) == 0 {
		v.Status.ActivePods = map[types.UID]string{p.UID: p.Spec.NodeName}
	}
	n, h := &corev1.Node{}, w.pod(w.instance())
	w.fill(n)
	n.Spec.Taints = one(w, nil, []corev1.Taint{{Key: corev1.TaintNodeOutOfService}})
	n.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
		{Type: corev1.NodeReady, Status: one(w, corev1.ConditionTrue, corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown), LastHeartbeatTime: w.ago(), LastTransitionTime: w.ago()},
	}
	o := instance.Observed{
		VMI: v, Node: instance.Node{Name: p.Spec.NodeName, Object: n, Handler: h, HandlerDown: one(w, time.Time{}, w.ago().Time)},
		Pods:       instance.Pods{Active: p, Stray: []*corev1.Pod{w.pod(v)}, Targets: []*corev1.Pod{w.pod(v)}},
		Sharers:    []instance.Sharer{{VMI: w.instance(), Pod: one(w, nil, w.pod(v))}},
		Neighbours: []*vmi.VirtualMachineInstance{w.instance()},
		Config:     pod.Config{Launcher: pod.Launcher{Image: "x", FullImage: "y"}},
		Claims:     w.claims(instance.ClaimNames(v)), Unguarded: w.IntN(8) == 0, Now: w.now,
	}
	o.Pods.Stray[0].Name, o.Pods.Targets[0].Name = "stray", "target"
	o.Pods.Targets[0].Labels[vmi.MigrationJobLabel] = "m"
	if w.IntN(8) == 0 {
		o.Pods.Active = nil
		o.Former = []*corev1.Pod{w.pod(v)}
		o.Pods.Active = one(w, p, p)
	}
	return o
}

// sent is the VM as an API server sends it, whose types hold nothing that JSON does not.
func sent(v *vmi.VirtualMachine) *vmi.VirtualMachine {
	raw, err := json.Marshal(v)
	o := &vmi.VirtualMachine{}
	if err == nil {
		err = json.Unmarshal(raw, o)
	}
	if err != nil {
		panic(err)
	}
	return o
}

// vms is what is observed of a VM, which has often changed since its VMI was started.
func (w *filled) vms() vm.Observed {
	v := &vmi.VirtualMachine{}
	w.fill(v)
	v.Generation, v.UID = 1+w.Int64N(2), "vm"
	v.Annotations[corev1.LastAppliedConfigAnnotation] = "{}"
	v.Spec.RunStrategy, v.Spec.Running = new(one(w, vmi.RunAlways, vmi.RunAlways, vmi.RunHalted, vmi.RunManual, vmi.RunRerunOnFailure)), nil
	v.Spec.DataVolumeTemplates = nil
	v.Status.RunStrategy = one(w, "", vmi.RunAlways, vmi.RunHalted)
	v.Status.StateChangeRequests = one(w, nil, []vmi.StateChangeRequest{{Action: vmi.StartRequest}}, []vmi.StateChangeRequest{{Action: vmi.StopRequest, UID: new(types.UID("a"))}})
	v.Status.StartFailure = nil
	v.Finalizers = []string{vmi.VMFinalizer}
	if w.IntN(4) > 0 {
		v.DeletionTimestamp = nil
	}
	v = sent(v)
	o := vm.Observed{VM: v, Claims: w.claims(claimNames(v)), LiveUpdate: w.IntN(2) == 0, Now: w.now}
	before := v.DeepCopy()
	if w.IntN(2) == 0 {
		before.Spec.Template.Spec.Domain.CPU = &vmi.CPU{Cores: 7}
	}
	for g := int64(1); g <= v.Generation; g++ {
		spec := before.Spec
		if g == v.Generation {
			spec = v.Spec
		}
		raw, err := json.Marshal(map[string]any{"spec": spec})
		if err != nil {
			panic(err)
		}
		r := &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: raw}, Revision: g}
		r.Name, r.UID = vmi.StartRevision(v.UID, g), types.UID(fmt.Sprint(g))
		r.Annotations, r.OwnerReferences = map[string]string{"a": "b"}, []metav1.OwnerReference{*metav1.NewControllerRef(v, vmi.VirtualMachines.GroupVersionKind)}
		o.Revisions = append(o.Revisions, r)
	}
	if w.IntN(3) > 0 {
		i := w.instance()
		i.Namespace, i.Name, i.OwnerReferences = v.Namespace, v.Name, one(w, nil, []metav1.OwnerReference{*metav1.NewControllerRef(v, vmi.VirtualMachines.GroupVersionKind)})
		i.Annotations[vmi.VMGenerationAnnotation] = fmt.Sprint(1 + w.IntN(2))
		if w.IntN(2) == 0 {
			i.Annotations[vmi.StartRevisionAnnotation] = fmt.Sprint(1 + w.IntN(2))
		}
		i.Status.VirtualMachineRevisionName = one(w, "", vmi.StartRevision(v.UID, 1), vmi.StartRevision(v.UID, 2))
		i.Spec.Domain.Devices.Interfaces = v.Spec.Template.Spec.Domain.Devices.DeepCopy().Interfaces
		for n := range i.Spec.Domain.Devices.Interfaces {
			i.Spec.Domain.Devices.Interfaces[n].State = one(w, vmi.InterfaceUp, vmi.InterfaceDown)
		}
		o.VMI = i
	}
	return o
}

func TestAPodHasChangedIfMoreThanItsVersionHas(t *testing.T) {
	for name, tt := range map[string]struct {
		change  func(*corev1.Pod)
		changed bool
	}{
		"nothing":     {func(*corev1.Pod) {}, false},
		"its version": {func(p *corev1.Pod) { p.ResourceVersion, p.Generation = "2", 2 }, false},
		"its status":  {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, true},
		"a label":     {func(p *corev1.Pod) { p.Labels = map[string]string{"a": "c"} }, true},
		"its node":    {func(p *corev1.Pod) { p.Spec.NodeName = "n1" }, true},
		"its end":     {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, true},
	} {
		before := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", ResourceVersion: "1", Generation: 1, Labels: map[string]string{"a": "b"}}}
		now := before.DeepCopy()
		tt.change(now)
		require.Equal(t, tt.changed, podChanged(before, now), name)
	}
}
