package instancetype

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// Apply returns the spec of a VMI with what an instance type and a preference say, and with
// the disks and the interface that it gets where it lists none. The spec is that of a
// template, before its defaults, since what defaults decide is not what a user asked for. The
// profile is that of these defaults. Either of t and p may be nil: there is none. The
// preference divides the processors of the instance type, and fills what is open after that.
//
// Conflicts are the fields that the template and the instance type set both, with their
// paths in the VMI. With conflicts, the spec is as it was.
func Apply(s *vmi.VirtualMachineInstanceSpec, t *VirtualMachineInstancetypeSpec, p *VirtualMachinePreferenceSpec,
	by defaults.Profile) (*vmi.VirtualMachineInstanceSpec, field.ErrorList) {
	a, conflicts := apply(field.NewPath("spec"), applied{spec: s}, t, p, by)
	return a.spec, conflicts
}

// applied is a VMI with its instance type and its preference.
type applied struct {
	spec *vmi.VirtualMachineInstanceSpec
	// annotations are those of the template, the instance type and the preference.
	annotations map[string]string
}

func (v applied) copy() applied {
	return applied{spec: v.spec.DeepCopy(), annotations: maps.Clone(v.annotations)}
}

// apply is Apply for a VMI with annotations, whose spec is at the path.
func apply(at *field.Path, v applied, t *VirtualMachineInstancetypeSpec, p *VirtualMachinePreferenceSpec, by defaults.Profile) (applied, field.ErrorList) {
	out := v.copy()
	if conflicts := size(at, &out, t, p); len(conflicts) > 0 {
		return v.copy(), conflicts
	}
	automatic(&out.spec.Domain.Devices, p)
	out.spec = defaults.Attached(out.spec, by)
	if p != nil {
		prefer(&out, p)
	}
	return out, nil
}

// conflict is a field that is set twice.
func conflict(at *field.Path) *field.Error {
	const twice = "the instance type sets it too: leave it out, or name another instance type"
	return field.Invalid(at, field.OmitValueType{}, twice)
}

// sizer takes the fields of an instance type one by one.
type sizer struct{ conflicts field.ErrorList }

// free says that the template leaves the field to the instance type, or notes the conflict.
func (z *sizer) free(isSet bool, at *field.Path) bool {
	if isSet {
		z.conflicts = append(z.conflicts, conflict(at))
	}
	return !isSet
}

// size gives the VMI what the instance type says.
func size(at *field.Path, v *applied, t *VirtualMachineInstancetypeSpec, p *VirtualMachinePreferenceSpec) field.ErrorList {
	if t == nil {
		return nil
	}
	z, s, domain := &sizer{}, v.spec, at.Child("domain")
	d := &s.Domain
	if t.NodeSelector != nil && z.free(s.NodeSelector != nil, at.Child("nodeSelector")) {
		s.NodeSelector = maps.Clone(t.NodeSelector)
	}
	if t.SchedulerName != "" && z.free(s.SchedulerName != "", at.Child("schedulerName")) {
		s.SchedulerName = t.SchedulerName
	}
	z.processors(domain, d, &t.CPU, p)
	z.memory(domain, d, &t.Memory)
	if o := t.IOThreads; o != nil && o.SupplementalPoolThreadCount != nil &&
		z.free(d.IOThreads != nil && d.IOThreads.SupplementalPoolThreadCount != nil, domain.Child("ioThreads", "supplementalPoolThreadCount")) {
		d.IOThreads = o.DeepCopy()
	}
	if t.IOThreadsPolicy != nil && z.free(d.IOThreadsPolicy != "", domain.Child("ioThreadsPolicy")) {
		d.IOThreadsPolicy = *t.IOThreadsPolicy
	}
	if t.LaunchSecurity != nil && z.free(d.LaunchSecurity != nil, domain.Child("launchSecurity")) {
		d.LaunchSecurity = t.LaunchSecurity.DeepCopy()
	}
	if len(t.GPUs) > 0 && z.free(len(d.Devices.GPUs) > 0, domain.Child("devices", "gpus")) {
		d.Devices.GPUs = t.DeepCopy().GPUs
	}
	if len(t.HostDevices) > 0 && z.free(len(d.Devices.HostDevices) > 0, domain.Child("devices", "hostDevices")) {
		d.Devices.HostDevices = t.DeepCopy().HostDevices
	}
	z.annotate(v, t.Annotations)
	return z.conflicts
}

func (z *sizer) processors(domain *field.Path, d *vmi.DomainSpec, t *CPUInstancetype, p *VirtualMachinePreferenceSpec) {
	if d.CPU == nil {
		d.CPU = &vmi.CPU{}
	}
	c, at, resources := d.CPU, domain.Child("cpu"), domain.Child("resources")
	_, requested := d.Resources.Requests[corev1.ResourceCPU]
	_, limited := d.Resources.Limits[corev1.ResourceCPU]
	z.free(requested, resources.Child("requests", "cpu"))
	z.free(limited, resources.Child("limits", "cpu"))
	z.free(c.Sockets != 0, at.Child("sockets"))
	z.free(c.Cores != 0, at.Child("cores"))
	z.free(c.Threads != 0, at.Child("threads"))
	c.Sockets, c.Cores, c.Threads = divide(t.Guest, p)
	if t.Model != nil && z.free(c.Model != "", at.Child("model")) {
		c.Model = *t.Model
	}
	if t.DedicatedCPUPlacement != nil && z.free(c.DedicatedCPUPlacement, at.Child("dedicatedCPUPlacement")) {
		c.DedicatedCPUPlacement = *t.DedicatedCPUPlacement
	}
	if t.IsolateEmulatorThread != nil && z.free(c.IsolateEmulatorThread, at.Child("isolateEmulatorThread")) {
		c.IsolateEmulatorThread = *t.IsolateEmulatorThread
	}
	if t.NUMA != nil && z.free(c.NUMA != nil, at.Child("numa")) {
		c.NUMA = t.NUMA.DeepCopy()
	}
	if t.MaxSockets != nil {
		c.MaxSockets = *t.MaxSockets
	}
}

// memory reports the first conflict only.
func (z *sizer) memory(domain *field.Path, d *vmi.DomainSpec, t *MemoryInstancetype) {
	if d.Memory == nil {
		d.Memory = &vmi.Memory{}
	}
	m, at, resources := d.Memory, domain.Child("memory"), domain.Child("resources")
	_, requested := d.Resources.Requests[corev1.ResourceMemory]
	_, limited := d.Resources.Limits[corev1.ResourceMemory]
	free := z.free(m.Guest != nil, at.Child("guest")) &&
		z.free(m.Hugepages != nil && t.Hugepages != nil, at.Child("hugepages")) &&
		z.free(m.MaxGuest != nil && t.MaxGuest != nil, at.Child("maxGuest")) &&
		z.free(requested, resources.Child("requests", "memory")) &&
		z.free(limited, resources.Child("limits", "memory"))
	if !free {
		return
	}
	m.Guest = new(t.Guest.DeepCopy())
	if t.Hugepages != nil {
		m.Hugepages = t.Hugepages.DeepCopy()
	}
	if t.MaxGuest != nil {
		m.MaxGuest = new(t.MaxGuest.DeepCopy())
	}
	if t.OvercommitPercent > 0 {
		if d.Resources.Requests == nil {
			d.Resources.Requests = corev1.ResourceList{}
		}
		d.Resources.Requests[corev1.ResourceMemory] = overcommitted(t.Guest, t.OvercommitPercent)
	}
}

// annotate adds annotations. The same value twice is no conflict.
func (z *sizer) annotate(v *applied, all map[string]string) {
	for _, k := range sortedKeys(all) {
		was, ok := v.annotations[k]
		if z.free(ok && was != all[k], field.NewPath("annotations", k)) {
			v.set(k, all[k])
		}
	}
}

func (v *applied) set(key, value string) {
	if v.annotations == nil {
		v.annotations = map[string]string{}
	}
	v.annotations[key] = value
}

// Expand returns a copy of the VM that names neither an instance type nor a preference,
// since its template has what they say. Conflicts are as those of [Apply], with their paths
// in the VM. With conflicts, and where it names neither, the VM is as it was.
func Expand(v *vmi.VirtualMachine, t *VirtualMachineInstancetypeSpec, p *VirtualMachinePreferenceSpec, by defaults.Profile) (*vmi.VirtualMachine, field.ErrorList) {
	out := v.DeepCopy()
	tmpl := out.Spec.Template
	if len(References(v)) == 0 || tmpl == nil {
		return out, nil
	}
	a, conflicts := apply(field.NewPath("spec", "template", "spec"), applied{&tmpl.Spec, tmpl.ObjectMeta.Annotations}, t, p, by)
	if len(conflicts) > 0 {
		return out, conflicts
	}
	tmpl.Spec, tmpl.ObjectMeta.Annotations = *a.spec, a.annotations
	out.Spec.Instancetype, out.Spec.Preference = nil, nil
	out.Status.InstancetypeRef, out.Status.PreferenceRef = nil, nil
	return out, nil
}

// Check returns the VM as [Expand] does, and all that is wrong with what it names: processors
// that cannot be divided as the preference says, conflicts, or the requirement of the
// preference that it does not meet.
func Check(v *vmi.VirtualMachine, t *VirtualMachineInstancetypeSpec, p *VirtualMachinePreferenceSpec, by defaults.Profile) (*vmi.VirtualMachine, field.ErrorList) {
	var faults field.ErrorList
	if t != nil && p != nil {
		faults = indivisible(t.CPU.Guest, p)
	}
	out, conflicts := Expand(v, t, p, by)
	if faults = append(faults, conflicts...); len(faults) > 0 || out.Spec.Template == nil {
		return out, faults
	}
	return out, requirements(defaults.Spec(&out.Spec.Template.Spec, by), t, p)
}
