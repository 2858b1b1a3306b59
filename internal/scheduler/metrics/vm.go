package metrics

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/internal/series"
	"github.com/podvisor/podvisor/internal/vmi/quantity"
	"github.com/podvisor/podvisor/vmi"
)

// VM is a VM, and what is known of what it names.
type VM struct {
	// VM is the VM with its template.
	VM *vmi.VirtualMachine
	// Sized is the template as its instance type and its preference make it. Nil: it names
	// none, or they are not known.
	Sized *vmi.VirtualMachineInstanceTemplateSpec
	// Names are those of the instance type and the preference.
	Names Names
	// Claim is the claim of this name in the namespace of the VM. Nil: there is none.
	Claim func(name string) *corev1.PersistentVolumeClaim
}

// Names are names of an instance type and a preference, as series have them.
type Names struct{ Instancetype, Preference string }

// Vendored is the name of an instance type or a preference as series have it: that of one
// which users made is no label.
func Vendored(name, vendor string) string {
	if name != "" && vendor != "kubevirt.io" && vendor != "redhat.com" {
		return "<other>"
	}
	return name
}

// VendorLabel is the label of an instance type or a preference with its vendor.
const VendorLabel = "instancetype.kubevirt.io/vendor"

// Series are the series of the VM.
func (v VM) Series() []series.Series {
	return series.Of(vms, v, []series.Label{{Name: "namespace", Value: v.VM.Namespace}, {Name: "name", Value: v.VM.Name}})
}

// template is the one that the values are read of.
func (v VM) template() *vmi.VirtualMachineInstanceTemplateSpec {
	switch {
	case v.Sized != nil:
		return v.Sized
	case v.VM.Spec.Template != nil:
		return v.VM.Spec.Template
	}
	return &vmi.VirtualMachineInstanceTemplateSpec{}
}

// adder takes a value with its labels.
type adder func(value float64, labels ...string)

var vms = []series.Metric[VM]{
	gauge("kubevirt_vm_info",
		"1 for each VM. status is that which users see, in lower case. Of instance types and preferences, only those of a vendor have their names here.",
		func(v VM, add adder) {
			t := v.template()
			status := v.VM.Status.PrintableStatus
			add(1, append(about(t.ObjectMeta.Annotations), machineType(t.Spec.Domain.Machine), v.Names.Instancetype, v.Names.Preference,
				strings.ToLower(string(status)), groupOf(status))...)
		}, "os", "workload", "flavor", "machine_type", "instance_type", "preference", "status", "status_group"),
	since("starting"), since("running"), since("migrating"), since("non_running"), since("error"),
	gauge("kubevirt_vm_create_date_timestamp_seconds", "When the VM was created.",
		func(v VM, add adder) { add(float64(v.VM.CreationTimestamp.Unix())) }),
	gauge("kubevirt_vm_resource_requests",
		"What the VM asks for, with its instance type as it is now. source is where that is from: domain, guest, hugepages, requests, default or guest_effective.",
		requests, "resource", "unit", "source"),
	gauge("kubevirt_vm_resource_limits", "The limits of the VM.", func(v VM, add adder) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if q, ok := v.template().Spec.Domain.Resources.Limits[name]; ok {
				add(q.AsApproximateFloat64(), string(name), map[corev1.ResourceName]string{corev1.ResourceCPU: "cores", corev1.ResourceMemory: "bytes"}[name])
			}
		}
	}, "resource", "unit"),
	gauge("kubevirt_vm_disk_allocated_size_bytes", "Size that is asked for by a claim of the VM. device is the name of the volume.",
		allocated, "persistentvolumeclaim", "volume_mode", "device"),
	gauge("kubevirt_vm_vnic_info", "1 for each interface of the VM's template.", func(v VM, add adder) {
		t := v.template()
		vnics(t.Spec.Networks, t.Spec.Domain.Devices.Interfaces, add)
	}, vnicLabels...),
}

// since is the metric of when a VM came into the group of its status.
func since(group string) series.Metric[VM] {
	m := gauge("kubevirt_vm_"+group+"_status_last_transition_timestamp_seconds",
		"When the VM last changed its conditions, if its status is of this group; else 0.",
		func(v VM, add adder) {
			now := groupOf(v.VM.Status.PrintableStatus)
			if now != group && (group != errorGroup || now != unknownGroup) {
				add(0)
				return
			}
			newest := time.Unix(-1, 0)
			for _, c := range v.VM.Status.Conditions {
				if slices.Contains([]vmi.ConditionType{vmi.ConditionReady, vmi.ConditionFailure, vmi.ConditionPaused}, c.Type) && c.LastTransitionTime.After(newest) {
					newest = c.LastTransitionTime.Time
				}
			}
			add(float64(newest.Unix()))
		})
	m.Type = series.Counter // as KubeVirt has it
	return m
}

const (
	errorGroup   = "error"
	unknownGroup = "<unknown>"
)

// groups are the groups of the statuses of VMs.
var groups = map[vmi.PrintableStatus]string{
	vmi.StatusProvisioning: "starting", vmi.StatusStarting: "starting", vmi.StatusWaitingForVolumeBinding: "starting",
	vmi.StatusRunning: "running", vmi.StatusMigrating: "migrating",
	vmi.StatusStopped: "non_running", vmi.StatusPaused: "non_running", vmi.StatusStopping: "non_running", vmi.StatusTerminating: "non_running",
	vmi.StatusCrashLoopBackOff: errorGroup, vmi.StatusUnknown: errorGroup, vmi.StatusUnschedulable: errorGroup, vmi.StatusErrImagePull: errorGroup,
	vmi.StatusImagePullBackOff: errorGroup, vmi.StatusPVCNotFound: errorGroup, vmi.StatusDataVolumeError: errorGroup,
}

func groupOf(s vmi.PrintableStatus) string {
	if g, ok := groups[s]; ok {
		return g
	}
	return unknownGroup
}

// cpuUnits are the units of processors in a spec.
var cpuUnits = []string{"cores", "threads", "sockets"}

// requests reads what the VM asks for.
func requests(v VM, add adder) {
	d := v.template().Spec.Domain
	memory := func(q resource.Quantity, source string) { add(q.AsApproximateFloat64(), "memory", "bytes", source) }
	request, ok := d.Resources.Requests[corev1.ResourceMemory]
	if ok {
		memory(request, "domain")
	}
	effective := request
	if m := d.Memory; m != nil {
		if m.Guest != nil {
			effective = *m.Guest
			memory(effective, "guest")
		}
		if h := m.Hugepages; h != nil {
			if size, err := quantity.Parse(h.PageSize); err == nil {
				memory(size, "hugepages")
			}
		}
	}
	if !effective.IsZero() {
		memory(effective, "guest_effective")
	}
	cpu := func(n float64, unit, source string) { add(n, "cpu", unit, source) }
	q, requested := d.Resources.Requests[corev1.ResourceCPU]
	switch c := d.CPU; {
	case c != nil && (c.Cores != 0 || c.Threads != 0 || c.Sockets != 0):
		for i, n := range []uint32{c.Cores, c.Threads, c.Sockets} {
			if n != 0 {
				cpu(float64(n), cpuUnits[i], "domain")
			}
		}
	case !requested:
		for _, unit := range cpuUnits {
			cpu(1, unit, "default")
		}
	}
	if requested {
		cpu(q.AsApproximateFloat64(), "cores", "requests")
	}
	cpu(float64(d.CPU.VCPUs()), "cores", "guest_effective")
}

// allocated reads what the claims of the VM ask for.
func allocated(v VM, add adder) {
	for _, volume := range v.template().Spec.Volumes {
		claim := volume.Claim()
		if claim == "" || volume.Ephemeral != nil {
			continue
		}
		c := v.Claim(claim)
		if c == nil {
			continue
		}
		size := c.Spec.Resources.Requests[corev1.ResourceStorage]
		if t := v.sizeOfTemplate(claim); t != nil {
			size = *t
		}
		mode := corev1.PersistentVolumeFilesystem
		if c.Spec.VolumeMode != nil {
			mode = *c.Spec.VolumeMode
		}
		add(size.AsApproximateFloat64(), claim, string(mode), volume.Name)
	}
}

// sizeOfTemplate is what the template of a DataVolume asks for. Nil: there is none.
func (v VM) sizeOfTemplate(name string) *resource.Quantity {
	for _, t := range v.VM.Spec.DataVolumeTemplates {
		if t.ObjectMeta.Name != name {
			continue
		}
		for _, r := range asked(t.Spec) {
			if q, ok := r[corev1.ResourceStorage]; ok {
				return &q
			}
		}
	}
	return nil
}

// asked are the requests of a claim that is to be made.
func asked(s vmi.DataVolumeSpec) []corev1.ResourceList {
	var out []corev1.ResourceList
	if s.PVC != nil {
		out = append(out, s.PVC.Resources.Requests)
	}
	if s.Storage != nil {
		out = append(out, s.Storage.Resources.Requests)
	}
	return out
}

// machineType is a machine type. Empty: the default.
func machineType(m *vmi.Machine) string {
	if m == nil {
		return ""
	}
	return m.Type
}

// The annotations that templates describe a VM by.
const (
	OSAnnotation       = "vm.kubevirt.io/os"
	WorkloadAnnotation = "vm.kubevirt.io/workload"
	FlavorAnnotation   = "vm.kubevirt.io/flavor"
)

func about(annotations map[string]string) []string {
	return []string{annotations[OSAnnotation], annotations[WorkloadAnnotation], annotations[FlavorAnnotation]}
}

func gauge[O any](name, help string, read func(O, adder), labels ...string) series.Metric[O] {
	return series.Metric[O]{
		Info: series.Info{Name: name, Help: help, Type: series.Gauge, Labels: labels},
		Read: func(o O, add func(float64, ...string)) { read(o, add) },
	}
}
