package metrics

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/internal/series"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// text are the series as they are served, without the labels that identify the object.
func text(all []series.Series) (out []string) {
	for _, s := range all {
		var own []string
		for _, l := range s.Labels {
			if l.Name != "namespace" && l.Name != "name" && l.Name != "node" {
				own = append(own, fmt.Sprintf("%s=%s", l.Name, l.Value))
			}
		}
		out = append(out, fmt.Sprintf("%s{%s} %.0f", strings.TrimPrefix(s.Name, "kubevirt_"), strings.Join(own, ","), s.Value))
	}
	return out
}

// at is so many seconds after 1970.
func at(seconds int64) metav1.Time { return metav1.Unix(seconds, 0) }

// web is a VM with a claim, an interface and limits.
func web() VM {
	t := &vmi.VirtualMachineInstanceTemplateSpec{}
	t.ObjectMeta.Annotations = map[string]string{OSAnnotation: "fedora", WorkloadAnnotation: "server", FlavorAnnotation: "small"}
	d := &t.Spec.Domain
	d.Machine = &vmi.Machine{Type: "q35"}
	d.CPU = &vmi.CPU{Cores: 2, Sockets: 3}
	d.Memory = &vmi.Memory{Guest: new(resource.MustParse("1Gi")), Hugepages: &vmi.Hugepages{PageSize: "2Mi"}}
	d.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi"), corev1.ResourceCPU: resource.MustParse("4")}
	d.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("3Gi"), corev1.ResourceCPU: resource.MustParse("5")}
	d.Devices.Interfaces = []vmi.Interface{
		{Name: "default", InterfaceBinding: vmi.InterfaceBinding{Masquerade: &vmi.InterfaceMasquerade{}}},
		{Name: "second", InterfaceBinding: vmi.InterfaceBinding{Bridge: &vmi.InterfaceBridge{}}, Model: "e1000"}, {Name: "none"},
	}
	t.Spec.Networks = []vmi.Network{
		{Name: "default", NetworkSource: vmi.NetworkSource{Pod: &vmi.PodNetwork{}}},
		{Name: "second", NetworkSource: vmi.NetworkSource{Multus: &vmi.MultusNetwork{NetworkName: "red"}}},
	}
	t.Spec.Volumes = []vmi.Volume{
		{Name: "root", VolumeSource: vmi.VolumeSource{DataVolume: &vmi.DataVolumeVolume{Name: "web-root"}}},
		{Name: "gone", VolumeSource: vmi.VolumeSource{DataVolume: &vmi.DataVolumeVolume{Name: "not-there"}}},
	}
	v := &vmi.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", CreationTimestamp: at(100)}}
	v.Spec.Template = t
	v.Status.PrintableStatus = vmi.StatusRunning
	v.Status.Conditions = []vmi.Condition{
		{Type: vmi.ConditionReady, LastTransitionTime: at(200)}, {Type: vmi.ConditionPaused, LastTransitionTime: at(300)}, {Type: "Other", LastTransitionTime: at(400)},
	}
	return VM{VM: v, Names: Names{Instancetype: "u1.small", Preference: "<other>"}, Claim: func(name string) *corev1.PersistentVolumeClaim {
		if name != "web-root" {
			return nil
		}
		c := &corev1.PersistentVolumeClaim{}
		c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
		c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1M")}
		return c
	}}
}

func TestTheSeriesOfAVM(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		"vm_info{flavor=small,instance_type=u1.small,machine_type=q35,os=fedora,preference=<other>,status=running,status_group=running,workload=server} 1",
		"vm_starting_status_last_transition_timestamp_seconds{} 0", "vm_running_status_last_transition_timestamp_seconds{} 300",
		"vm_migrating_status_last_transition_timestamp_seconds{} 0", "vm_non_running_status_last_transition_timestamp_seconds{} 0",
		"vm_error_status_last_transition_timestamp_seconds{} 0", "vm_create_date_timestamp_seconds{} 100",
		"vm_resource_requests{resource=memory,source=domain,unit=bytes} 2147483648", "vm_resource_requests{resource=memory,source=guest,unit=bytes} 1073741824",
		"vm_resource_requests{resource=memory,source=hugepages,unit=bytes} 2097152", "vm_resource_requests{resource=memory,source=guest_effective,unit=bytes} 1073741824",
		"vm_resource_requests{resource=cpu,source=domain,unit=cores} 2", "vm_resource_requests{resource=cpu,source=domain,unit=sockets} 3",
		"vm_resource_requests{resource=cpu,source=requests,unit=cores} 4", "vm_resource_requests{resource=cpu,source=guest_effective,unit=cores} 6",
		"vm_resource_limits{resource=cpu,unit=cores} 5", "vm_resource_limits{resource=memory,unit=bytes} 3221225472",
		"vm_disk_allocated_size_bytes{device=root,persistentvolumeclaim=web-root,volume_mode=Block} 1000000",
		"vm_vnic_info{binding_name=masquerade,binding_type=core,model=<none>,network=pod networking,vnic_name=default} 1",
		"vm_vnic_info{binding_name=bridge,binding_type=core,model=e1000,network=red,vnic_name=second} 1",
	}, text(web().Series()))
}

func TestAVMWithoutATemplateHasSeries(t *testing.T) {
	t.Parallel()
	v := VM{VM: &vmi.VirtualMachine{}, Claim: func(string) *corev1.PersistentVolumeClaim { return nil }}
	got := text(v.Series())
	require.Contains(t, got, "vm_info{status_group=<unknown>} 1")
	require.Contains(t, got, "vm_error_status_last_transition_timestamp_seconds{} -1", "a status without a group counts as an error, and no condition has changed")
	require.Contains(t, got, "vm_resource_requests{resource=cpu,source=default,unit=cores} 1")
}

func TestTheTemplateOfADataVolumeSaysTheSizeOfItsClaim(t *testing.T) {
	t.Parallel()
	v := web()
	v.VM.Spec.DataVolumeTemplates = []vmi.DataVolumeTemplate{{ObjectMeta: metav1.ObjectMeta{Name: "web-root"}, Spec: vmi.DataVolumeSpec{
		PVC: &corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2M")}}},
	}}}
	require.Contains(t, text(v.Series()), "vm_disk_allocated_size_bytes{device=root,persistentvolumeclaim=web-root,volume_mode=Block} 2000000")
}

func TestTheSeriesOfAVMI(t *testing.T) {
	t.Parallel()
	v := vmitest.New()
	v.Annotations = map[string]string{OSAnnotation: "fedora"}
	v.Labels = map[string]string{vmi.OutdatedLauncherLabel: ""}
	v.Spec.Networks, v.Spec.Domain.Devices.Interfaces = nil, nil
	v.Status.Phase, v.Status.NodeName, v.Status.Machine = vmi.PhaseRunning, "n1", &vmi.Machine{Type: "pc-q35-9.2"}
	v.Status.Interfaces = []vmi.InterfaceStatus{{Name: "default", InterfaceName: "eth0", IP: "10.0.0.1"}, {InterfaceName: "cni0"}, {MAC: "02:00:00:00:00:01"}}
	v.Status.MigrationState = &vmi.MigrationState{StartTimestamp: new(at(10)), EndTimestamp: new(at(20)), Failed: true, Completed: true}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "virt-launcher-x", Annotations: map[string]string{launched.OverheadAnnotation: "4096"}}}
	p.Status.Phase = corev1.PodRunning
	i := Instance{VMI: v, Pod: p, Names: Names{Preference: "fedora"}, Eviction: vmi.EvictionLiveMigrate, Migration: "move"}
	require.Equal(t, []string{
		"vmi_info{evictable=false,guest_os_machine=pc-q35-9.2,os=fedora,outdated=true,phase=running,preference=fedora,vmi_pod=virt-launcher-x} 1",
		"vmi_non_evictable{} 1", "vmi_launcher_memory_overhead_bytes{} 4096",
		"vmi_status_addresses{address=10.0.0.1,interface_name=eth0,type=ExternalInterface,vnic_name=default} 1",
		"vmi_status_addresses{interface_name=cni0,type=SystemInterface} 1",
		"vmi_migration_start_time_seconds{migration_name=move} 10", "vmi_migration_end_time_seconds{migration_name=move,status=failed} 20",
	}, text(i.Series()))

	v.Status.Conditions = []vmi.Condition{{Type: vmi.ConditionLiveMigratable, Status: corev1.ConditionTrue}}
	require.Contains(t, text(i.Series()), "vmi_non_evictable{} 0")
	v.Status.Conditions, v.Spec.EvictionStrategy = nil, new(vmi.EvictionNone)
	require.Contains(t, text(i.Series()), "vmi_non_evictable{} 0", "its own strategy counts")
	i.Pod = nil
	v.Status = vmi.VirtualMachineInstanceStatus{}
	require.Equal(t, []string{"vmi_info{evictable=true,os=fedora,outdated=true,preference=fedora} 1", "vmi_non_evictable{} 0"}, text(i.Series()))
}

func TestMigrationsAreCountedByTheirPhase(t *testing.T) {
	t.Parallel()
	f := Fleet{Outdated: 3, Emulation: true}
	for _, p := range []vmi.MigrationPhase{
		vmi.MigrationPhaseUnset, vmi.MigrationPhasePending, vmi.MigrationPhasePending, vmi.MigrationPhaseScheduling, vmi.MigrationPhaseScheduled,
		vmi.MigrationPhasePreparingTarget, vmi.MigrationPhaseTargetReady, vmi.MigrationPhaseRunning, vmi.MigrationPhaseSucceeded, vmi.MigrationPhaseFailed,
	} {
		m := &vmi.VirtualMachineInstanceMigration{ObjectMeta: metav1.ObjectMeta{Name: "to-" + string(p)}}
		m.Spec.VMIName, m.Status.Phase = "web", p
		f.Migrations = append(f.Migrations, m)
	}
	require.Equal(t, []string{
		"vmi_number_of_outdated{} 3", "configuration_emulation_enabled{} 1", "vmi_migrations_in_unset_phase{} 1", "vmi_migrations_in_pending_phase{} 2", "vmi_migrations_in_scheduling_phase{} 1",
		"vmi_migrations_in_running_phase{} 4", "vmi_migration_succeeded{vmi=web,vmim=to-Succeeded} 1", "vmi_migration_failed{vmi=web,vmim=to-Failed} 1",
	}, text(f.Series()))
	require.Contains(t, text(Fleet{}.Series()), "configuration_emulation_enabled{} 0")
	require.NotContains(t, text(Fleet{Outdated: -1}.Series()), "vmi_number_of_outdated{} -1", "they were not counted")
}

func TestAnInstanceTypeOfUsersIsNoLabel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, vendor, want string }{
		{"u1.small", "kubevirt.io", "u1.small"}, {"rhel", "redhat.com", "rhel"}, {"mine", "", "<other>"}, {"mine", "me", "<other>"}, {"", "", ""},
	} {
		require.Equal(t, tt.want, Vendored(tt.name, tt.vendor))
	}
}

func TestAChangeOfPhaseIsAValueOfHistograms(t *testing.T) {
	t.Parallel()
	was := vmitest.New()
	was.CreationTimestamp, was.Status.Phase = at(100), vmi.PhaseScheduling
	now := was.DeepCopy()
	now.Status.Phase = vmi.PhaseFailed
	now.Status.PhaseTransitionTimestamps = []vmi.PhaseTransitionTimestamp{
		{Phase: vmi.PhaseScheduling, PhaseTransitionTimestamp: at(101)}, {Phase: vmi.PhaseFailed, PhaseTransitionTimestamp: at(105)},
	}
	require.Equal(t, []Value{{&FromLast, []string{"Failed", "Scheduling"}, 4}, {&FromCreation, []string{"Failed"}, 5}}, Phases(was, now))
	now.DeletionTimestamp = new(at(110))
	require.Equal(t, Value{&FromDeletion, []string{"Failed"}, 0}, Phases(was, now)[2], "less than nothing is 0")
	require.Empty(t, Phases(now, now))
	now.Status.PhaseTransitionTimestamps = nil
	require.Empty(t, Phases(was, now), "it does not say when")

	move := &vmi.VirtualMachineInstanceMigration{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(100)}}
	moved := move.DeepCopy()
	moved.Status.SetPhase(vmi.MigrationPhasePending, at(103))
	require.Equal(t, []Value{{&MoveFromCreation, []string{"Pending"}, 3}}, Moved(move, moved))
	require.Empty(t, Moved(moved, moved))
}
