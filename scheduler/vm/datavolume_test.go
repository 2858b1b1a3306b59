package vm_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/vm"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// filledVM is a VM with the DataVolume root, which starts.
func filledVM() *vmi.VirtualMachine {
	v := &vmi.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "vm-uid", Generation: 1}}
	v.Spec.RunStrategy, v.Spec.Template = new(vmi.RunAlways), &vmi.VirtualMachineInstanceTemplateSpec{}
	v.Spec.Template.Spec.Domain.Memory = &vmi.Memory{Guest: new(resource.MustParse("64Mi"))}
	v.Spec.Template.Spec.Volumes = []vmi.Volume{{Name: "root", VolumeSource: vmi.VolumeSource{DataVolume: &vmi.DataVolumeVolume{Name: "root"}}}}
	v.Spec.DataVolumeTemplates = []vmi.DataVolumeTemplate{{
		ObjectMeta: metav1.ObjectMeta{Name: "root"},
		Spec:       vmi.DataVolumeSpec{Source: &vmi.DataVolumeSource{Blank: &vmi.DataVolumeBlankImage{}}, PVC: &corev1.PersistentVolumeClaimSpec{}},
	}}
	return v
}

// inPhase is the VM's DataVolume in the phase.
func inPhase(phase string, conditions ...any) *unstructured.Unstructured {
	d := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": phase, "conditions": conditions}}}
	d.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(filledVM(), vmi.VirtualMachines.GroupVersionKind)})
	return d
}

func TestAVMWaitsForItsDataVolumes(t *testing.T) {
	t.Parallel()
	claim := &corev1.PersistentVolumeClaim{Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}}
	others := inPhase("Succeeded")
	others.SetOwnerReferences([]metav1.OwnerReference{{Kind: "ConfigMap", Name: "x", UID: "x", Controller: new(true)}})
	ownerless := inPhase("Succeeded")
	ownerless.SetOwnerReferences(nil)
	there := func(d *unstructured.Unstructured) vm.DataVolumes { return vm.DataVolumes{"root": d} }
	for name, tt := range map[string]struct {
		volumes       vm.DataVolumes
		claim         *corev1.PersistentVolumeClaim
		creates, runs bool
		printed       vmi.PrintableStatus
		failure       string
	}{
		"the kind is not served":                  {nil, nil, false, false, vmi.StatusStopped, vm.DataVolumesNotServed},
		"it does not exist":                       {there(nil), nil, true, false, vmi.StatusProvisioning, ""},
		"it is gone and its claim is there":       {there(nil), claim, false, true, "", ""},
		"it has no phase":                         {there(inPhase("")), nil, false, false, vmi.StatusProvisioning, ""},
		"it is being filled":                      {there(inPhase("ImportInProgress")), claim, false, false, vmi.StatusProvisioning, ""},
		"it waits for the first consumer":         {there(inPhase("WaitForFirstConsumer")), claim, false, true, "", ""},
		"it is filled once there is a pod":        {there(inPhase("PendingPopulation")), claim, false, true, "", ""},
		"it is filled":                            {there(inPhase("Succeeded")), claim, false, true, "", ""},
		"it is filled and has no owner":           {there(ownerless), claim, false, true, "", ""},
		"it failed":                               {there(inPhase("Failed")), claim, false, false, vmi.StatusDataVolumeError, vm.FailedDataVolumeImport},
		"it is tried again and again":             {there(inPhase("ImportInProgress", map[string]any{"type": "Running", "status": "False", "reason": "Error"})), claim, false, false, vmi.StatusDataVolumeError, vm.FailedDataVolumeImport},
		"it belongs to something else":            {there(others), claim, false, false, vmi.StatusStopped, vm.DataVolumeNameTaken},
		"its conditions are not what is expected": {there(inPhase("Succeeded", "text", map[string]any{"type": 1.0})), claim, false, true, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := vm.Observed{VM: filledVM(), DataVolumes: tt.volumes, Claims: map[string]*corev1.PersistentVolumeClaim{"root": tt.claim}, Now: time.Unix(1e9, 0)}
			p := vm.Decide(o)
			creates, runs := false, false
			var status *vmi.VirtualMachineStatus
			for _, a := range p.Actions {
				switch a := a.(type) {
				case scheduler.CreateDataVolume:
					creates = true
					require.True(t, metav1.IsControlledBy(a.DataVolume, o.VM))
				case scheduler.CreateInstance:
					runs = true
				case scheduler.WriteStatus[*vmi.VirtualMachine]:
					status = &a.Object.Status
				}
			}
			require.Equal(t, tt.creates, creates, "creates the DataVolume")
			require.Equal(t, tt.runs, runs, "creates the VMI")
			if tt.runs {
				require.Nil(t, status, "that it starts is not written at once")
				require.Positive(t, p.Recheck)
				return
			}
			require.NotNil(t, status)
			require.Equal(t, tt.printed, status.PrintableStatus)
			if c := status.Condition(vmi.ConditionFailure); tt.failure != "" {
				require.NotNil(t, c)
				require.Equal(t, tt.failure, c.Reason)
				require.NotEmpty(t, c.Message)
			} else {
				require.Nil(t, c)
			}
			require.Equal(t, tt.failure == vm.DataVolumesNotServed, p.Recheck > 0)

			o.VM.Status = *status
			for _, a := range vm.Decide(o).Actions {
				_, writes := a.(scheduler.WriteStatus[*vmi.VirtualMachine])
				require.False(t, writes, "the same is written once")
			}
		})
	}
}

// The importer asks whether who creates a DataVolume may read its source: for a VM that
// is virt-controller and not its user.
func TestAttackADataVolumeOfAVMReadsNoOtherNamespace(t *testing.T) {
	t.Parallel()
	other := &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "secrets", Namespace: new("theirs")}
	for name, spec := range map[string]vmi.DataVolumeSpec{
		"a claim":                  {Source: &vmi.DataVolumeSource{PVC: &vmi.DataVolumeSourceObject{Namespace: "theirs", Name: "secrets"}}},
		"a snapshot":               {Source: &vmi.DataVolumeSource{Snapshot: &vmi.DataVolumeSourceObject{Namespace: "theirs", Name: "secrets"}}},
		"the source of the claim":  {PVC: &corev1.PersistentVolumeClaimSpec{DataSourceRef: other}},
		"the source of the volume": {Storage: &vmi.DataVolumeStorage{DataSourceRef: other}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := filledVM()
			v.Spec.DataVolumeTemplates[0].Spec = spec
			p := vm.Decide(vm.Observed{VM: v, DataVolumes: vm.DataVolumes{"root": nil}, Now: time.Unix(1e9, 0)})
			for _, a := range p.Actions {
				switch a := a.(type) {
				case scheduler.CreateDataVolume, scheduler.CreateInstance:
					t.Fatalf("%T", a)
				case scheduler.WriteStatus[*vmi.VirtualMachine]:
					require.Contains(t, a.Object.Status.Condition(vmi.ConditionFailure).Message, "namespace theirs")
				}
			}
			require.NotEmpty(t, p.Actions)
		})
	}
}

func TestADataVolumeOfAPoolOutlivesItsVM(t *testing.T) {
	t.Parallel()
	pool := func(uid types.UID) *vmpool.VirtualMachinePool {
		return &vmpool.VirtualMachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: uid}}
	}
	ref := func(uid types.UID) metav1.OwnerReference {
		return *metav1.NewControllerRef(pool(uid), vmpool.VirtualMachinePools.GroupVersionKind)
	}
	for name, tt := range map[string]struct {
		kept   bool
		of     types.UID // the pool of the VM
		there  types.UID // the pool of the DataVolume that is there
		taken  bool
		made   bool
		byPool bool
	}{
		"a pool keeps it":                            {kept: true, of: "p", made: true, byPool: true},
		"a pool does not keep it":                    {of: "p", made: true},
		"a VM alone":                                 {kept: true, made: true},
		"it was kept":                                {kept: true, of: "p", there: "p"},
		"it was kept, and the next one is not":       {of: "p", there: "p"},
		"another pool keeps it":                      {kept: true, of: "p", there: "other", taken: true},
		"it was kept, and the VM has left the pool":  {kept: true, there: "p"},
		"a pool keeps it, of which the VM never was": {there: "p", taken: true},
	} {
		v := filledVM()
		if tt.of != "" {
			v.OwnerReferences = []metav1.OwnerReference{ref(tt.of)}
		}
		if tt.kept {
			v.Spec.DataVolumeTemplates[0].ObjectMeta.Annotations = map[string]string{vm.KeptAnnotation: "true"}
		}
		o := vm.Observed{VM: v, DataVolumes: vm.DataVolumes{"root": nil}, Claims: map[string]*corev1.PersistentVolumeClaim{"root": nil}, Now: time.Unix(1e9, 0)}
		if tt.there != "" {
			d := inPhase("Succeeded")
			d.SetOwnerReferences([]metav1.OwnerReference{ref(tt.there)})
			o.DataVolumes["root"], o.Claims["root"] = d, &corev1.PersistentVolumeClaim{}
		}
		var made *unstructured.Unstructured
		runs := false
		for _, a := range vm.Decide(o).Actions {
			switch a := a.(type) {
			case scheduler.CreateDataVolume:
				made = a.DataVolume
			case scheduler.CreateInstance:
				runs = true
			}
		}
		require.Equal(t, tt.made, made != nil, name)
		require.Equal(t, tt.there != "" && !tt.taken, runs, name)
		if made != nil {
			require.Equal(t, tt.byPool, metav1.IsControlledBy(made, pool("p")), name)
			require.Equal(t, !tt.byPool, metav1.IsControlledBy(made, v), name)
		}
	}
}
