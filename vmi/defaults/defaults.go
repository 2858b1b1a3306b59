package defaults

import (
	"slices"

	"github.com/podvisor/podvisor/vmi"
)

// Instance returns a copy of v in which everything that it leaves open is decided.
// Applying it twice changes nothing more.
func Instance(v *vmi.VirtualMachineInstance, p Profile) *vmi.VirtualMachineInstance {
	v = v.DeepCopy()
	spec(&v.Spec, p)
	uuid := p.UUID
	if uuid == "" && v.UID != "" {
		uuid = UUID(v.UID)
	}
	firmware(&v.Spec.Domain, uuid, "")
	switch v.Status.Phase {
	case vmi.PhaseUnset:
		finalizer(v)
		layout(v)
		status(v, p)
	case vmi.PhasePending: // stored while the webhook was down, and its pod is not made yet
		layout(v)
	}
	return v
}

// Spec returns a copy of s in which everything that it leaves open is decided,
// but for the firmware's UUID, which belongs to one VMI.
func Spec(s *vmi.VirtualMachineInstanceSpec, p Profile) *vmi.VirtualMachineInstanceSpec {
	s = s.DeepCopy()
	spec(s, p)
	return s
}

// Attached returns a copy of s with what a VMI gets that does not list it: a disk for each
// volume, and an interface on the pod network. Nothing else is decided.
func Attached(s *vmi.VirtualMachineInstanceSpec, p Profile) *vmi.VirtualMachineInstanceSpec {
	s = s.DeepCopy()
	connected(s, p)
	shown(s)
	return s
}

// VirtualMachine returns a copy of v with what must stay the same for each
// VMI that is made of it: architecture, machine type, and the identity of the
// profile, if it has one. The rest is decided when a VMI is made, so that a cluster's
// new defaults take effect at the next start.
func VirtualMachine(v *vmi.VirtualMachine, p Profile) *vmi.VirtualMachine {
	v = v.DeepCopy()
	if v.Spec.Template == nil {
		return v
	}
	s := &v.Spec.Template.Spec
	machineType(s, p)
	firmware(&s.Domain, p.UUID, p.Serial)
	return v
}

// ReplicaSet returns a copy of r with the number of VMIs and their
// architecture and machine type. The rest is decided when a VMI is made.
func ReplicaSet(r *vmi.VirtualMachineInstanceReplicaSet, p Profile) *vmi.VirtualMachineInstanceReplicaSet {
	r = r.DeepCopy()
	if r.Spec.Replicas == nil {
		r.Spec.Replicas = new(int32(1))
	}
	if r.Spec.Template != nil {
		machineType(&r.Spec.Template.Spec, p)
	}
	return r
}

// Migration returns a copy of m with the label by which the migrations of a VMI are found,
// and with its finalizer unless it has ended or is being deleted.
func Migration(m *vmi.VirtualMachineInstanceMigration) *vmi.VirtualMachineInstanceMigration {
	m = m.DeepCopy()
	if !m.Status.Phase.Final() && m.DeletionTimestamp == nil && !slices.Contains(m.Finalizers, vmi.MigrationFinalizer) {
		m.Finalizers = append(m.Finalizers, vmi.MigrationFinalizer)
	}
	if m.Spec.VMIName == "" {
		return m
	}
	if m.Labels == nil {
		m.Labels = map[string]string{}
	}
	m.Labels[vmi.MigrationSelectorLabel] = m.Spec.VMIName
	return m
}

// spec decides in an order in which each step finds what it builds on.
func spec(s *vmi.VirtualMachineInstanceSpec, p Profile) {
	machineType(s, p)
	resources(&s.Domain, p)
	memory(&s.Domain)
	topology(&s.Domain)
	images(s, p)
	if s.EvictionStrategy == nil {
		s.EvictionStrategy = new(p.evictionStrategy())
	}
	networks(s, p)
	disks(s)
	inputs(s.Domain.Devices.Inputs)
	watchdog(s.Domain.Devices.Watchdog, s.Architecture)
	gpus(s.Domain.Devices.GPUs)
	probe(s.LivenessProbe)
	probe(s.ReadinessProbe)
	timers(s.Domain.Clock)
	features(&s.Domain, s.Architecture)
	bootloader(s)
	model(s, p)
	hotplug(s, p)
}
