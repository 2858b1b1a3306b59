package vm_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/vm"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/instancetype"
)

// named has the VM name an instance type of the cluster, and its template say nothing of its
// size.
func (w *world) named(name string) {
	w.vm.Spec.Instancetype = &vmi.InstancetypeMatcher{Name: name}
	w.vm.Spec.Template.Spec.Domain.Memory, w.vm.Spec.Template.Spec.Domain.CPU = nil, nil
}

// offer makes an instance type of the cluster, or changes it.
func (w *world) offer(name string, processors uint32) {
	o := &instancetype.VirtualMachineClusterInstancetype{}
	o.Name, o.UID, o.Generation = name, types.UID(name+"-uid"), 1
	o.Labels, o.Annotations = map[string]string{"a": "b"}, map[string]string{"c": "d"}
	o.Spec.CPU.Guest = processors
	o.Spec.Memory.Guest = resource.MustParse("1Gi")
	w.objects = slices.DeleteFunc(w.objects, func(was vmi.Object) bool {
		if was.GetName() == name {
			o.Generation = was.GetGeneration() + 1
		}
		return was.GetName() == name
	})
	w.objects = append(w.objects, o)
}

// lookup is the API server's.
func (w *world) lookup() instancetype.Lookup {
	l := instancetype.Nothing()
	l.Object = func(d vmi.Definition, _, name string) (vmi.Object, error) {
		for _, o := range w.objects {
			if o.GetName() == name && reflect.TypeOf(o) == reflect.TypeOf(d.New()) {
				return o, nil
			}
		}
		return nil, nil
	}
	l.Revision = func(_, name string) (*appsv1.ControllerRevision, error) {
		for _, r := range w.sizes {
			if r.Name == name {
				return r, nil
			}
		}
		return nil, nil
	}
	return l
}

func TestAVMKeepsTheInstanceTypeThatItWasFirstStartedWith(t *testing.T) {
	t.Parallel()
	w := newWorld(t, vmi.RunAlways)
	w.offer("small", 2)
	w.named("small")
	w.settleWithin(0)
	require.Equal(t, []string{"create size", "create revision", "create vmi"}, w.writes, "one more than without")
	require.Equal(t, uint32(2), w.vmi.Spec.Domain.CPU.Sockets)
	require.Equal(t, "1Gi", w.vmi.Spec.Domain.Memory.Guest.String())
	require.Equal(t, "small", w.vmi.Annotations["kubevirt.io/cluster-instancetype-name"])
	w.quick()
	require.Equal(t, []string{"create size", "create revision", "create vmi", "status Running"}, w.writes)
	const held = "vm-small-v1beta1-small-uid-1"
	require.Equal(t, &vmi.InstancetypeStatusRef{Name: "small", ControllerRevisionRef: &vmi.ControllerRevisionRef{Name: held}}, w.vm.Status.InstancetypeRef)
	require.Nil(t, w.vm.Status.PreferenceRef)

	w.offer("small", 8)
	w.writes = nil
	w.settle()
	require.Empty(t, w.writes, "a change of the instance type changes no VM that has it")
	w.objects = nil
	w.settle()
	require.Empty(t, w.writes, "nor does its deletion")
	w.phase(vmi.PhaseFailed)
	w.settle()
	w.gone()
	require.NotNil(t, w.vmi)
	require.Equal(t, uint32(2), w.vmi.Spec.Domain.CPU.Sockets)
	require.Len(t, w.sizes, 1)
	require.Len(t, w.revisions, 1, "the start revision is kept too")
}

func TestAnInstanceTypeIsHeldAsTheAPISays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, vmi.RunHalted)
	w.offer("small", 2)
	w.named("small")
	w.settle()
	require.Equal(t, []string{"create size", "status Stopped"}, w.writes, "also of a VM that is off")
	r := w.sizes[0]
	require.Equal(t, map[string]string{
		"kubevirt.io":                                "virtual-machine",
		"instancetype.kubevirt.io/object-name":       "small",
		"instancetype.kubevirt.io/object-kind":       "VirtualMachineClusterInstancetype",
		"instancetype.kubevirt.io/object-uid":        "small-uid",
		"instancetype.kubevirt.io/object-version":    "v1beta1",
		"instancetype.kubevirt.io/object-generation": "1",
	}, r.Labels)
	require.True(t, metav1.IsControlledBy(r, w.vm))
	require.Zero(t, r.Revision)
	var is map[string]any
	require.NoError(t, json.Unmarshal(r.Data.Raw, &is))
	require.Equal(t, map[string]any{
		"apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": "VirtualMachineClusterInstancetype",
		"metadata": map[string]any{"name": "small", "uid": "small-uid", "generation": float64(1)},
		"spec":     map[string]any{"cpu": map[string]any{"guest": float64(2)}, "memory": map[string]any{"guest": "1Gi"}},
	}, is)
	sorted, err := json.Marshal(is)
	require.NoError(t, err)
	require.Equal(t, string(sorted), string(r.Data.Raw), "the garbage collector writes it back in this order")
}

func TestAVMOfAnInstanceTypeThatIsMissingWaitsForIt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		name   func(w *world)
		reason string
	}{
		"an instance type":         {func(w *world) { w.named("small") }, vm.FailedFindInstancetype},
		"a preference":             {func(w *world) { w.vm.Spec.Preference = &vmi.PreferenceMatcher{Name: "linux"} }, vm.FailedFindPreference},
		"a kind that there is not": {func(w *world) { w.vm.Spec.Instancetype = &vmi.InstancetypeMatcher{Name: "small", Kind: "Flavor"} }, vm.FailedFindInstancetype},
		"what a volume is to name": {func(w *world) { w.vm.Spec.Instancetype = &vmi.InstancetypeMatcher{InferFromVolume: "root"} }, vm.FailedFindInstancetype},
		"a revision":               {func(w *world) { w.vm.Spec.Instancetype = &vmi.InstancetypeMatcher{Name: "small", RevisionName: "gone"} }, vm.FailedFindInstancetype},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, vmi.RunAlways)
			tt.name(w)
			p := w.decide()
			require.Len(t, p.Actions, 2)
			e, ok := p.Actions[1].(scheduler.Emit)
			require.True(t, ok)
			require.True(t, e.Warning)
			require.Equal(t, tt.reason, e.Reason)
			w.settle()
			require.Equal(t, []string{"status Stopped"}, w.writes)
			require.Equal(t, tt.reason, w.vm.Status.Reason)
			require.Equal(t, e.Message, w.vm.Status.Condition(vmi.ConditionFailure).Message)
			require.Equal(t, e.Message, w.vm.Status.Condition(vmi.ConditionReady).Message)
			require.Nil(t, w.vm.Status.InstancetypeRef)
			w.named("small")
			w.vm.Spec.Preference = nil
			w.offer("small", 1)
			w.settle()
			require.NotNil(t, w.vmi, "it starts when what it names is there")
			require.Nil(t, w.vm.Status.Condition(vmi.ConditionFailure))
		})
	}
}

func TestAVMThatNamesWhatIsMissingCanBeStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, vmi.RunAlways)
	w.settle()
	w.run()
	w.edit(func(*vmi.VirtualMachineSpec) { w.named("small") })
	w.settle()
	require.Equal(t, vm.FailedFindInstancetype, w.vm.Status.Condition(vmi.ConditionFailure).Reason)
	require.NotNil(t, w.vmi)
	require.Nil(t, w.vmi.DeletionTimestamp, "its VMI runs on")
	w.edit(func(s *vmi.VirtualMachineSpec) { s.RunStrategy = new(vmi.RunHalted) })
	w.settle()
	w.gone()
}

func TestAConflictWithTheTemplateStartsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, vmi.RunAlways)
	w.offer("small", 2)
	w.named("small")
	w.vm.Spec.Template.Spec.Domain.CPU = &vmi.CPU{Cores: 2}
	w.settle()
	require.Equal(t, []string{"status Stopped"}, w.writes)
	require.Empty(t, w.sizes)
	c := w.vm.Status.Condition(vmi.ConditionFailure)
	require.Equal(t, vm.FailedCreate, c.Reason)
	require.Contains(t, c.Message, "spec.template.spec.domain.cpu.cores")
}

func TestAnotherInstanceTypeWaitsForTheNextStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, vmi.RunAlways)
	w.offer("small", 1)
	w.offer("large", 4)
	w.named("small")
	w.settle()
	w.run()
	w.edit(func(s *vmi.VirtualMachineSpec) { s.Instancetype.Name = "large" })
	w.writes = nil
	w.settle()
	require.Equal(t, []string{"create size", "status Running"}, w.writes)
	require.Equal(t, uint32(1), w.vmi.Spec.Domain.CPU.Sockets, "the guest is not changed")
	require.Contains(t, w.vm.Status.Condition(vmi.ConditionRestartRequired).Message, "spec.instancetype")
	require.Equal(t, "vm-large-v1beta1-large-uid-1", w.vm.Status.InstancetypeRef.ControllerRevisionRef.Name)
	require.Len(t, w.sizes, 2, "the one before stays")
	require.NotEqual(t, w.vm.Generation, w.vm.Status.ObservedGeneration)

	w.edit(func(s *vmi.VirtualMachineSpec) { s.Instancetype.Name = "small" })
	w.settle()
	require.Nil(t, w.vm.Status.Condition(vmi.ConditionRestartRequired), "it is as it was started again")
	w.edit(func(s *vmi.VirtualMachineSpec) { s.Instancetype.Name = "large" })
	w.settle()
	w.request(vmi.StopRequest, nil)
	w.settle()
	w.gone()
	require.Equal(t, uint32(4), w.vmi.Spec.Domain.CPU.Sockets)
	w.run()
	require.Nil(t, w.vm.Status.Condition(vmi.ConditionRestartRequired))
}

func TestAnEqualInstanceTypeOfAnotherNameNeedsNoRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, vmi.RunAlways)
	w.offer("small", 1)
	w.offer("tiny", 1)
	w.offer("large", 4)
	w.named("small")
	w.settle()
	w.run()
	w.edit(func(s *vmi.VirtualMachineSpec) { s.Instancetype.Name = "tiny" })
	w.writes = nil
	w.settle()
	require.Equal(t, []string{"create size", "status Running", "change vmi"}, w.writes)
	require.Nil(t, w.vm.Status.Condition(vmi.ConditionRestartRequired))
	require.Equal(t, "vm-tiny-v1beta1-tiny-uid-1", w.vm.Status.InstancetypeRef.ControllerRevisionRef.Name)
	require.Equal(t, w.vm.Generation, w.vm.Status.ObservedGeneration)

	w.edit(func(s *vmi.VirtualMachineSpec) { s.Instancetype.Name = "large" })
	w.settle()
	require.Contains(t, w.vm.Status.Condition(vmi.ConditionRestartRequired).Message, "spec.instancetype")
	w.edit(func(s *vmi.VirtualMachineSpec) { s.Instancetype.Name = "tiny" })
	w.settle()
	require.Nil(t, w.vm.Status.Condition(vmi.ConditionRestartRequired), "it is as large as it was started")
}

func TestTheKindAndTheRevisionOfAReference(t *testing.T) {
	t.Parallel()
	w := newWorld(t, vmi.RunHalted)
	w.offer("small", 1)
	w.named("small")
	w.vm.Spec.Instancetype.Kind = "virtualmachineclusterinstancetypes"
	w.settle()
	const first = "vm-small-v1beta1-small-uid-1"
	ref := w.vm.Status.InstancetypeRef
	require.Equal(t, "virtualmachineclusterinstancetypes", ref.Kind)
	w.offer("small", 2)
	w.edit(func(s *vmi.VirtualMachineSpec) { s.Instancetype.Kind = "" })
	w.settle()
	require.Equal(t, ref, w.vm.Status.InstancetypeRef, "no kind is the kind that it was")
	w.offer("large", 4)
	w.edit(func(s *vmi.VirtualMachineSpec) { s.Instancetype.Name, s.Instancetype.RevisionName = "large", first })
	w.settle()
	require.Equal(t, first, w.vm.Status.InstancetypeRef.ControllerRevisionRef.Name, "the revision that the user names counts")
	require.Equal(t, "large", w.vm.Status.InstancetypeRef.Name)
	w.edit(func(s *vmi.VirtualMachineSpec) { s.Instancetype.RevisionName = "" })
	w.settle()
	require.Equal(t, "vm-large-v1beta1-large-uid-1", w.vm.Status.InstancetypeRef.ControllerRevisionRef.Name, "the other one holds another object")
	w.edit(func(s *vmi.VirtualMachineSpec) { s.Instancetype = nil })
	was := w.vm.Status.InstancetypeRef.DeepCopy()
	w.settle()
	require.Equal(t, was, w.vm.Status.InstancetypeRef, "what a VM names no more stays in its status")
}

func TestAVMHasWhatItsPreferenceSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, vmi.RunAlways)
	p := &instancetype.VirtualMachinePreference{}
	p.Name, p.Namespace, p.UID, p.Generation = "linux", "ns", "linux-uid", 4
	p.Spec.Devices = &instancetype.DevicePreferences{PreferredRng: &vmi.Rng{}}
	w.objects = append(w.objects, p)
	w.vm.Spec.Preference = &vmi.PreferenceMatcher{Name: "linux", Kind: "VirtualMachinePreference"}
	w.settle()
	require.NotNil(t, w.vmi.Spec.Domain.Devices.Rng)
	require.Equal(t, "linux", w.vmi.Annotations["kubevirt.io/preference-name"])
	ref := &vmi.InstancetypeStatusRef{Name: "linux", Kind: "VirtualMachinePreference", ControllerRevisionRef: &vmi.ControllerRevisionRef{Name: "vm-linux-v1beta1-linux-uid-4"}}
	require.Equal(t, ref, w.vm.Status.PreferenceRef)
	require.Nil(t, w.vm.Status.InstancetypeRef)
	w.run()
	require.Nil(t, w.vm.Status.Condition(vmi.ConditionRestartRequired))
}

func TestAStartRevisionSaysWhichRevisionsTheVMINames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, vmi.RunAlways)
	w.offer("small", 1)
	w.named("small")
	w.settle()
	r, err := vm.AsStored(w.revisions[0], map[string]any{"instancetype": map[string]any{"name": "small"}, "runStrategy": "Always"})
	require.NoError(t, err)
	require.JSONEq(t, `{"spec": {"runStrategy": "Always", "instancetype": {"name": "small", "revisionName": "vm-small-v1beta1-small-uid-1"}}}`, string(r.Data.Raw))
	require.Equal(t, "vm-small-v1beta1-small-uid-1", vm.Pinned(w.vm, w.revisions[0]).Spec.Instancetype.RevisionName)
	require.Same(t, w.vm, vm.Pinned(w.vm, nil))
}

func TestARevisionOfAnEarlierVersionIsReplacedAtTheNextStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, vmi.RunAlways)
	w.offer("small", 2)
	w.named("small")
	w.settle()
	w.run()
	delete(w.sizes[0].Labels, instancetype.ObjectVersionLabel)
	w.sizes[0].Name = "former"
	w.vm.Status.InstancetypeRef.ControllerRevisionRef.Name = "former"
	w.offer("small", 8)
	w.writes = nil
	w.settle()
	require.Empty(t, w.writes, "a VM that runs is left alone")
	require.Nil(t, w.vm.Status.Condition(vmi.ConditionRestartRequired))
	w.request(vmi.StopRequest, nil)
	w.settle()
	w.gone()
	require.Len(t, w.sizes, 2)
	require.Equal(t, "vm-small-v1beta1-small-uid-1", w.sizes[1].Name)
	require.Equal(t, "v1beta1", w.sizes[1].Labels[instancetype.ObjectVersionLabel])
	require.Equal(t, w.sizes[0].Data, w.sizes[1].Data, "it holds the same")
	require.Equal(t, uint32(2), w.vmi.Spec.Domain.CPU.Sockets)
	w.run()
	require.Equal(t, "vm-small-v1beta1-small-uid-1", w.vm.Status.InstancetypeRef.ControllerRevisionRef.Name)
	require.Nil(t, w.vm.Status.Condition(vmi.ConditionRestartRequired))
	w.request(vmi.StopRequest, nil)
	w.settle()
	w.gone()
	require.Len(t, w.sizes, 2, "once")
}

func TestAVMThatIsExpandedNeedsNoRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, vmi.RunAlways)
	w.offer("small", 2)
	w.named("small")
	w.settle()
	w.run()
	w.objects = nil
	size := &instancetype.VirtualMachineInstancetypeSpec{}
	size.CPU.Guest, size.Memory.Guest = 2, resource.MustParse("1Gi")
	out, conflicts := instancetype.Expand(w.vm, size, nil, defaults.Profile{})
	require.Empty(t, conflicts)
	w.edit(func(s *vmi.VirtualMachineSpec) { *s = out.Spec })
	w.settle()
	require.Nil(t, w.vm.Status.Condition(vmi.ConditionRestartRequired))
	require.Equal(t, w.vm.Generation, w.vm.Status.ObservedGeneration)
	w.edit(func(s *vmi.VirtualMachineSpec) { s.Template.Spec.Domain.CPU.Model = "Haswell" })
	w.settle()
	require.Contains(t, w.vm.Status.Condition(vmi.ConditionRestartRequired).Message, "spec.template.spec.domain.cpu.model")
	w.request(vmi.StopRequest, nil)
	w.settle()
	w.gone()
	require.Equal(t, uint32(2), w.vmi.Spec.Domain.CPU.Sockets)
	w.run()
	require.Nil(t, w.vm.Status.Condition(vmi.ConditionRestartRequired))
}
