package metrics

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/internal/series"
	"github.com/podvisor/podvisor/vmi"
)

// Instance is a VMI, and what is known of it.
type Instance struct {
	// VMI is the VMI.
	VMI *vmi.VirtualMachineInstance
	// Pod is its pod on its node. Nil: there is none.
	Pod *corev1.Pod
	// Names are those of its instance type and its preference.
	Names Names
	// Eviction is what its eviction means where it does not say so itself.
	Eviction vmi.EvictionStrategy
	// Migration is the name of its last migration. Empty: it has none, or that is gone.
	Migration string
}

// Series are the series of the VMI.
func (i Instance) Series() []series.Series {
	return series.Of(instances, i, append(named(i), series.Label{Name: "node", Value: i.VMI.Status.NodeName}))
}

func named(i Instance) []series.Label {
	return []series.Label{{Name: "namespace", Value: i.VMI.Namespace}, {Name: "name", Value: i.VMI.Name}}
}

// stays says that an eviction means a migration of the VMI, and that it cannot migrate.
func (i Instance) stays() bool {
	strategy := i.Eviction
	if s := i.VMI.Spec.EvictionStrategy; s != nil {
		strategy = *s
	}
	c := i.VMI.Status.Condition(vmi.ConditionLiveMigratable)
	return strategy == vmi.EvictionLiveMigrate && (c == nil || c.Status != corev1.ConditionTrue)
}

var instances = []series.Metric[Instance]{
	gauge("kubevirt_vmi_info", "1 for each VMI. What its guest runs is not known here.", func(i Instance, add adder) {
		s := &i.VMI.Status
		_, outdated := i.VMI.Labels[vmi.OutdatedLauncherLabel]
		pod := ""
		if i.Pod != nil && i.Pod.Status.Phase == corev1.PodRunning {
			pod = i.Pod.Name
		}
		add(1, append(append([]string{strings.ToLower(string(s.Phase))}, about(i.VMI.Annotations)...), i.Names.Instancetype, i.Names.Preference,
			machineType(s.Machine), strconv.FormatBool(!i.stays()), strconv.FormatBool(outdated), pod)...)
	}, "phase", "os", "workload", "flavor", "instance_type", "preference", "guest_os_machine", "evictable", "outdated", "vmi_pod"),
	gauge("kubevirt_vmi_non_evictable", "1 if an eviction of the VMI means its migration, and it cannot migrate.",
		func(i Instance, add adder) { add(map[bool]float64{true: 1}[i.stays()]) }),
	overhead(gauge("kubevirt_vmi_launcher_memory_overhead_bytes", "What the pod asks for besides the memory of the guest. It has no label node.",
		func(i Instance, add adder) {
			if i.Pod == nil {
				return
			}
			if q := launched.MemoryOverhead(i.Pod); q != nil {
				add(q.AsApproximateFloat64())
			}
		})),
	gauge("kubevirt_vmi_status_addresses", "1 for each interface that the status has. type is ExternalInterface if it has an address, else SystemInterface.",
		func(i Instance, add adder) {
			for _, n := range i.VMI.Status.Interfaces {
				kind := "SystemInterface"
				if n.IP != "" {
					kind = "ExternalInterface"
				}
				if n.IP != "" || n.Name != "" || n.InterfaceName != "" {
					add(1, n.Name, n.InterfaceName, n.IP, kind)
				}
			}
		}, "vnic_name", "interface_name", "address", "type"),
	gauge("kubevirt_vmi_vnic_info", "1 for each interface of the VMI.", func(i Instance, add adder) {
		vnics(i.VMI.Spec.Networks, i.VMI.Spec.Domain.Devices.Interfaces, add)
	}, vnicLabels...),
	gauge("kubevirt_vmi_migration_start_time_seconds", "When the last migration of the VMI began.", func(i Instance, add adder) {
		if m := i.VMI.Status.MigrationState; m != nil && m.StartTimestamp != nil {
			add(float64(m.StartTimestamp.Unix()), i.Migration)
		}
	}, "migration_name"),
	gauge("kubevirt_vmi_migration_end_time_seconds", "When the last migration of the VMI ended. status is succeeded or failed.", func(i Instance, add adder) {
		m := i.VMI.Status.MigrationState
		if m == nil || m.EndTimestamp == nil {
			return
		}
		status := ""
		switch {
		case m.Failed:
			status = "failed"
		case m.Completed:
			status = "succeeded"
		}
		add(float64(m.EndTimestamp.Unix()), i.Migration, status)
	}, "migration_name", "status"),
}

// overhead is the metric without the label node.
func overhead(m series.Metric[Instance]) series.Metric[Instance] {
	m.Common = named
	return m
}
