package validate_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/validate"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func fields(l field.ErrorList) []string {
	var out []string
	for _, e := range l {
		out = append(out, e.Field+": "+string(e.Type))
	}
	return out
}

func read[T any](t *testing.T, text string) *T {
	t.Helper()
	var out T
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &out))
	return &out
}

var (
	controller = validate.User{Kind: validate.Controller}
)

func TestInstance(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change vmitest.Option
		by     validate.User
		want   []string
	}{
		{"a VMI that is right", func(*vmi.VirtualMachineInstance) {}, validate.User{}, nil},
		{"a VMI without memory", func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Memory = nil }, validate.User{}, []string{"spec.domain.memory.guest: FieldValueRequired"}},
		{"a volume that nothing shows", func(v *vmi.VirtualMachineInstance) {
			vmitest.WithEmptyDisk("a", "1Gi")(v)
			v.Spec.Domain.Devices.Disks = nil
		}, validate.User{}, []string{"spec.domain.volumes[0].name: FieldValueInvalid"}},
		{"a user's reserved label", func(v *vmi.VirtualMachineInstance) { v.Labels = map[string]string{vmi.NodeNameLabel: "a", "mine": "b"} }, validate.User{}, []string{"metadata.labels: FieldValueNotSupported"}},
		{"our reserved label", func(v *vmi.VirtualMachineInstance) { v.Labels = map[string]string{vmi.NodeNameLabel: "a"} }, controller, nil},
		{"annotations that are switched off", func(v *vmi.VirtualMachineInstance) {
			v.Annotations = map[string]string{vmi.HookSidecarsAnnotation: "[]", vmi.IgnitionAnnotation: "{}"}
		}, controller, []string{"metadata.annotations: FieldValueInvalid", "metadata.annotations: FieldValueInvalid"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, fields(validate.Instance(vmitest.New(tt.change), tt.by, validate.Limits{})))
		})
	}
}

func TestVirtualMachine(t *testing.T) {
	const right = `template: {spec: {domain: {memory: {guest: 1Gi}}}}`
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"a VMI that is right", `{spec: {runStrategy: Always, ` + right + `}}`, nil},
		{"no template", `{spec: {runStrategy: Always, template: null}}`, []string{"spec.template: FieldValueRequired"}},
		{"a VM that runs in two ways", `{spec: {running: true, runStrategy: Always, ` + right + `}}`, []string{"spec.running: FieldValueInvalid"}},
		{"a VM that runs in two ways, of which one is none", `{spec: {running: true, runStrategy: x, ` + right + `}}`, []string{"spec.running: FieldValueInvalid", "spec.runStrategy: FieldValueInvalid"}},
		{"a VMI that may grow, with the memory nodes of its node", `{spec: {runStrategy: Always, template: {spec: {domain: {cpu: {cores: 2, dedicatedCpuPlacement: true, numa: {guestMappingPassthrough: {}}}, memory: {guest: 2Gi, maxGuest: 4Gi, hugepages: {pageSize: 2Mi}}}}}}}`, []string{"spec.template.spec.domain.memory.guest: FieldValueInvalid"}},
		{"a VMI with the memory nodes of its node", `{spec: {runStrategy: Always, template: {spec: {domain: {cpu: {cores: 2, dedicatedCpuPlacement: true, numa: {guestMappingPassthrough: {}}}, memory: {guest: 2Gi, hugepages: {pageSize: 2Mi}}}}}}}`, nil},
		{"a VM that does not say when it runs", `{spec: {` + right + `}}`, []string{"spec.running: FieldValueInvalid"}},
		{"volumes that are replaced in no known way", `{spec: {runStrategy: Always, updateVolumesStrategy: x, ` + right + `}}`, []string{"spec.updateVolumesStrategy: FieldValueInvalid"}},
		{"a template with a reserved label", `{spec: {runStrategy: Always, template: {metadata: {labels: {kubevirt.io/nodeName: a}}, spec: {domain: {memory: {guest: 1Gi}}}}}}`, []string{"spec.template.metadata.labels: FieldValueNotSupported"}},
		{"a VMI that may grow, with encrypted memory that is switched off", `{spec: {runStrategy: Always, template: {spec: {domain: {memory: {guest: 2Gi, maxGuest: 4Gi}, launchSecurity: {sev: {}}}}}}}`, []string{"spec.template.spec.launchSecurity: FieldValueInvalid", "spec.template.spec.domain.memory.guest: FieldValueInvalid"}},
		{"a VMI that may grow to less than it has", `{spec: {runStrategy: Always, template: {spec: {domain: {memory: {guest: 2Gi, maxGuest: 1Gi}}}}}}`, []string{"spec.template.spec.domain.memory.guest: FieldValueInvalid"}},
		{"a request that is two", `{spec: {runStrategy: Always, ` + right + `}, status: {volumeRequests: [{addVolumeOptions: {name: a, disk: null, volumeSource: {}}, removeVolumeOptions: {name: a}}]}}`, []string{"Status.volumeRequests: FieldValueInvalid"}},
		{"a request for nothing", `{spec: {runStrategy: Always, ` + right + `}, status: {volumeRequests: [{addVolumeOptions: {name: a, disk: null, volumeSource: {}}}]}}`, []string{"Status.volumeRequests: FieldValueInvalid", "Status.volumeRequests: FieldValueInvalid"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, fields(validate.VirtualMachine(read[vmi.VirtualMachine](t, tt.text), validate.User{}, validate.Limits{})))
		})
	}
	gone := read[vmi.VirtualMachine](t, `{spec: {template: null}}`)
	gone.DeletionTimestamp = new(metav1.Now())
	require.Empty(t, validate.VirtualMachine(gone, validate.User{}, validate.Limits{}), "a VM that is being deleted is right")
}

func TestATemplateMayLeaveTheMachineTypeToTheCluster(t *testing.T) {
	narrow := validate.Limits{MachineTypes: map[string][]string{"amd64": {"pc-q35-7.2"}}}
	v := vmitest.NewVM(vmi.RunHalted)
	require.Empty(t, validate.VirtualMachine(v, controller, narrow))
	v.Spec.Template.Spec.Domain.Machine = &vmi.Machine{Type: "q35"}
	require.Equal(t, []string{"spec.template.spec.domain.machine.type: FieldValueInvalid"}, fields(validate.VirtualMachine(v, controller, narrow)))
}

func TestAVMMayWaitForAnotherClusterUnlessThatIsSwitchedOff(t *testing.T) {
	v := read[vmi.VirtualMachine](t, `{spec: {runStrategy: WaitAsReceiver, template: {spec: {domain: {memory: {guest: 1Gi}}}}}}`)
	require.Empty(t, validate.VirtualMachine(v, validate.User{}, validate.Limits{}))
	require.Equal(t, []string{"spec.runStrategy: FieldValueInvalid"}, fields(validate.VirtualMachine(v, validate.User{}, nothing)))
}

func TestDataVolumeTemplates(t *testing.T) {
	const one = "spec.dataVolumeTemplate[0]"
	for _, tt := range []struct {
		name, templates string
		want            []string
	}{
		{"one that is right", `[{metadata: {name: a, namespace: n}, spec: {storage: {}, source: {blank: {}}}}]`, nil},
		{"a claim that is filled by itself", `[{metadata: {name: a}, spec: {pvc: {dataSource: {kind: PersistentVolumeClaim, name: b}}}}]`, nil},
		{"a source elsewhere", `[{metadata: {name: a}, spec: {storage: {}, sourceRef: {kind: DataSource, name: b}}}]`, nil},
		{"no name, which hides that it is not used", `[{spec: {storage: {}, source: {blank: {}}}}]`, []string{one + ".name: FieldValueRequired"}},
		{"no claim", `[{metadata: {name: a}, spec: {source: {blank: {}}}}]`, []string{one + ".PVC.Storage: FieldValueInvalid"}},
		{"two claims", `[{metadata: {name: a}, spec: {pvc: {}, storage: {}, source: {blank: {}}}}]`, []string{one + ".PVC.Storage: FieldValueInvalid"}},
		{"no source", `[{metadata: {name: a}, spec: {storage: {}}}]`, []string{one + ".source.sourceRef: FieldValueInvalid"}},
		{"a source that is none", `[{metadata: {name: a}, spec: {storage: {}, source: {}}}]`, []string{one + ".source: FieldValueInvalid"}},
		{"two sources", `[{metadata: {name: a}, spec: {storage: {}, source: {blank: {}, upload: {}}}}]`, []string{one + ".source: FieldValueInvalid"}},
		{"two sources in two fields", `[{metadata: {name: a}, spec: {storage: {}, source: {blank: {}}, sourceRef: {kind: DataSource, name: b}}}]`, []string{one + ".source: FieldValueInvalid"}},
		{"a claim that is filled twice", `[{metadata: {name: a}, spec: {storage: {dataSourceRef: {kind: VolumeSnapshot, name: b}}, source: {blank: {}}}}]`, []string{one + ".source: FieldValueInvalid"}},
		{"another namespace", `[{metadata: {name: a, namespace: m}, spec: {storage: {}, source: {blank: {}}}}]`, []string{"spec.dataVolumeTemplates[0]: FieldValueInvalid"}},
		{"one that is not used, and one that is", `[{metadata: {name: b}, spec: {storage: {}, source: {blank: {}}}}, {metadata: {name: a}, spec: {storage: {}, source: {blank: {}}}}]`, []string{one + ": FieldValueRequired"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := read[vmi.VirtualMachine](t, `{metadata: {name: v, namespace: n}, spec: {runStrategy: Always, dataVolumeTemplates: `+tt.templates+`,
				template: {spec: {domain: {memory: {guest: 1Gi}}, volumes: [{name: a, dataVolume: {name: a}}]}}}}`)
			require.Equal(t, tt.want, fields(validate.VirtualMachine(v, validate.User{}, validate.Limits{})))
		})
	}
}

const claimRequest = `{"addVolumeOptions":{"name":"b","disk":{"disk":{"bus":"scsi"}},"volumeSource":{"persistentVolumeClaim":{"claimName":"b"}}}}`

func TestVolumeRequests(t *testing.T) {
	vm := func(requests string) *vmi.VirtualMachine {
		return read[vmi.VirtualMachine](t, `{spec: {runStrategy: Always, template: {spec: {domain: {memory: {guest: 1Gi}, devices: {disks: [{name: a, bootOrder: 1}]}}, volumes: [{name: a, persistentVolumeClaim: {claimName: a}}]}}},
			status: {volumeRequests: `+requests+`}}`)
	}
	const ordered = `[{addVolumeOptions: {name: b, disk: {bootOrder: 1, disk: {bus: scsi}}, volumeSource: {persistentVolumeClaim: {claimName: b}}}}]`
	for _, tt := range []struct {
		name, requests string
		want           []string
	}{
		{"a volume more", `[` + claimRequest + `]`, nil},
		{"a volume more with the boot order of another", ordered, []string{"spec.template.spec.domain.devices.disks[1].bootOrder: FieldValueInvalid"}},
		{"a volume less", `[{removeVolumeOptions: {name: a}}]`, nil},
		{"a volume in the place of another", `[{removeVolumeOptions: {name: a}}, ` + ordered[1:], nil},
		{"a volume that is there already", `[{addVolumeOptions: {name: a, disk: {disk: {bus: scsi}}, volumeSource: {persistentVolumeClaim: {claimName: a, hotpluggable: true}}}}]`, nil},
		{"another volume of the same name", `[{addVolumeOptions: {name: a, disk: {disk: {bus: scsi}}, volumeSource: {persistentVolumeClaim: {claimName: b}}}}]`, []string{"Status.volumeRequests: FieldValueInvalid"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := vm(tt.requests)
			before := v.DeepCopy()
			require.Equal(t, tt.want, fields(validate.VirtualMachine(v, validate.User{}, validate.Limits{})))
			require.Equal(t, before, v, "validation changes nothing")
		})
	}
	v := vm(`[` + claimRequest + `]`)
	running := func(change vmitest.Option) *vmi.VirtualMachineInstance {
		return vmitest.New(vmitest.WithEmptyDisk("root", "1Gi"), change)
	}
	for _, tt := range []struct {
		name string
		is   *vmi.VirtualMachineInstance
		want []string
	}{
		{"nothing runs", nil, nil},
		{"a VMI without the volume", running(func(*vmi.VirtualMachineInstance) {}), nil},
		{"a VMI with the volume", running(vmitest.WithDisk("b", vmi.VolumeSource{PersistentVolumeClaim: &vmi.PersistentVolumeClaimVolume{PersistentVolumeClaimVolumeSource: corev1.PersistentVolumeClaimVolumeSource{ClaimName: "b"}, Hotpluggable: true}})), nil},
		{"a VMI with another volume of its name", running(vmitest.WithEmptyDisk("b", "1Gi")), []string{"Status.volumeRequests: FieldValueInvalid"}},
		{"a VMI with another volume that goes away", running(func(v *vmi.VirtualMachineInstance) {
			vmitest.WithEmptyDisk("b", "1Gi")(v)
			v.DeletionTimestamp = new(metav1.Now())
		}), nil},
		{"a VMI that moves", running(func(v *vmi.VirtualMachineInstance) { v.Status.MigrationState = &vmi.MigrationState{} }), []string{"spec: FieldValueNotSupported"}},
		{"a VMI that has moved", running(func(v *vmi.VirtualMachineInstance) { v.Status.MigrationState = &vmi.MigrationState{Completed: true} }), nil},
		{"a VMI with too many volumes", running(func(v *vmi.VirtualMachineInstance) {
			for i := range 255 {
				vmitest.WithEmptyDisk(fmt.Sprintf("v%d", i), "1Gi")(v)
			}
		}), []string{"spec.volumes: FieldValueInvalid"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, fields(validate.VolumeRequests(v, tt.is, validate.Limits{})))
		})
	}
}

func TestReplicaSet(t *testing.T) {
	const right = `template: {metadata: {labels: {a: b}}, spec: {domain: {memory: {guest: 1Gi}}}}`
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"a set that is right", `{spec: {selector: {matchLabels: {a: b}}, ` + right + `}}`, nil},
		{"a set of nothing", `{spec: {replicas: -1, selector: null, template: null}}`, []string{"spec.replicas: FieldValueInvalid", "spec.template: FieldValueRequired", "spec.selector: FieldValueRequired"}},
		{"a set that does not find its VMIs", `{spec: {selector: {matchLabels: {a: c}}, ` + right + `}}`, []string{"spec.selector: FieldValueInvalid"}},
		{"a set that takes all VMIs", `{spec: {selector: {}, ` + right + `}}`, []string{"spec.selector: FieldValueInvalid"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, fields(validate.ReplicaSet(read[vmi.VirtualMachineInstanceReplicaSet](t, tt.text), validate.User{}, validate.Limits{})))
		})
	}
	old := read[vmi.VirtualMachineInstanceReplicaSet](t, `{spec: {selector: {matchLabels: {c: d}}, `+right+`}}`)
	r := read[vmi.VirtualMachineInstanceReplicaSet](t, `{spec: {selector: {matchLabels: {a: b}}, `+right+`}}`)
	require.Equal(t, []string{"spec.selector: FieldValueInvalid"}, fields(validate.ReplicaSetUpdate(old, r, validate.User{}, validate.Limits{})))
}

func TestMigration(t *testing.T) {
	m := read[vmi.VirtualMachineInstanceMigration](t, `{metadata: {labels: {kubevirt.io/vmi-name: a}}, spec: {vmiName: a, priority: system-critical, addedNodeSelector: {"a b": c}}}`)
	require.Equal(t, []string{"spec.addedNodeSelector[a b]: FieldValueInvalid", "spec.priority: FieldValueForbidden"}, fields(validate.Migration(m, validate.User{})))
	require.Equal(t, []string{"spec.addedNodeSelector[a b]: FieldValueInvalid"}, fields(validate.Migration(m, controller)))
	other := m.DeepCopy()
	other.Spec.VMIName, other.Labels = "b", nil
	require.Equal(t, []string{": FieldValueNotSupported", ": FieldValueNotSupported"}, fields(validate.MigrationUpdate(m, other)))
}

func TestMigrationOf(t *testing.T) {
	m := read[vmi.VirtualMachineInstanceMigration](t, `{metadata: {name: m, namespace: n}, spec: {vmiName: a}}`)
	other := func(name, instance string, p vmi.MigrationPhase) vmi.VirtualMachineInstanceMigration {
		o := m.DeepCopy()
		o.Name, o.Spec.VMIName, o.Status.Phase = name, instance, p
		return *o
	}
	instance := func(change vmitest.Option) *vmi.VirtualMachineInstance {
		return vmitest.New(func(v *vmi.VirtualMachineInstance) { v.Status.Phase = vmi.PhaseRunning }, change)
	}
	same := func(*vmi.VirtualMachineInstance) {}
	migratable := func(s corev1.ConditionStatus) vmitest.Option {
		return func(v *vmi.VirtualMachineInstance) {
			v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionLiveMigratable, Status: s, Reason: vmi.ReasonDisksNotLiveMigratable}, metav1.Now())
		}
	}
	const fault = "spec.vmiName: FieldValueInvalid"
	for _, tt := range []struct {
		name     string
		instance *vmi.VirtualMachineInstance
		others   []vmi.VirtualMachineInstanceMigration
		want     []string
	}{
		{"a VMI that runs", instance(same), nil, nil},
		{"a VMI that is known to be able to move", instance(migratable(corev1.ConditionTrue)), nil, nil},
		{"no VMI", nil, nil, []string{fault}},
		{"a VMI that has ended", instance(func(v *vmi.VirtualMachineInstance) { v.Status.Phase = vmi.PhaseFailed }), nil, []string{fault}},
		{"a VMI that is being deleted", instance(func(v *vmi.VirtualMachineInstance) { v.DeletionTimestamp = new(metav1.Now()) }), nil, []string{fault}},
		{"a VMI that cannot move", instance(migratable(corev1.ConditionFalse)), nil, []string{fault}},
		{"a VMI that moves already", instance(same), []vmi.VirtualMachineInstanceMigration{other("o", "a", vmi.MigrationPhasePending)}, []string{fault}},
		{"a VMI that has moved, and others that move", instance(same), []vmi.VirtualMachineInstanceMigration{
			other("o", "a", vmi.MigrationPhaseSucceeded), other("p", "b", vmi.MigrationPhaseRunning), other("m", "a", vmi.MigrationPhasePending)}, nil},
		{"a VMI that cannot move and moves already", instance(migratable(corev1.ConditionFalse)), []vmi.VirtualMachineInstanceMigration{other("o", "a", vmi.MigrationPhaseUnset)}, []string{fault, fault}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, fields(validate.MigrationOf(m, tt.instance, tt.others...)))
		})
	}
}

func TestAVMOfWhichASnapshotIsMadeKeepsItsVolumes(t *testing.T) {
	old := read[vmi.VirtualMachine](t, `{spec: {runStrategy: Always, template: {spec: {domain: {memory: {guest: 1Gi}}}}}}`)
	v := read[vmi.VirtualMachine](t, `{spec: {runStrategy: Halted, template: {spec: {domain: {memory: {guest: 1Gi}}, volumes: [{name: a, emptyDisk: {capacity: 1Gi}}]}}}, status: {snapshotInProgress: a}}`)
	require.Equal(t, []string{"spec: FieldValueNotSupported", "spec: FieldValueNotSupported"}, fields(validate.VirtualMachineUpdate(old, v, validate.User{}, validate.Limits{})))
	v.Status = vmi.VirtualMachineStatus{RestoreInProgress: new("a")}
	require.Equal(t, []string{"spec: FieldValueNotSupported"}, fields(validate.VirtualMachineUpdate(old, v, validate.User{}, validate.Limits{})))
	v.Spec.RunStrategy = new(vmi.RunAlways)
	require.Empty(t, validate.VirtualMachineUpdate(old, v, validate.User{}, validate.Limits{}), "the rest may change")
}
