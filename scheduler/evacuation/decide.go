package evacuation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/internal/scheduler/move"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// Observed is everything that a decision depends on.
type Observed struct {
	// VMI is the VMI as it is stored.
	VMI *vmi.VirtualMachineInstance
	// Pods are the pods that were made for it.
	Pods []*corev1.Pod
	// Migrations are those of the VMI.
	Migrations []*vmi.VirtualMachineInstanceMigration
	// Taints are those of its node.
	Taints []corev1.Taint
	// Drain is the key of the taint of nodes that are drained.
	Drain string
	// Profile completes the VMI, where it names no strategy.
	Profile defaults.Profile
}

// Decide says what is to be done for a VMI that has to leave its node: it is migrated, once
// nothing else moves it and only one of its pods may run.
func Decide(o Observed) scheduler.Plan {
	v := o.VMI
	if !o.leaves() || !o.moved() || !move.Movable(v) || !move.Free(v, o.Pods, o.Migrations) {
		return scheduler.Plan{}
	}
	c := move.Cause{
		Prefix: vmi.EvacuationNamePrefix, Annotation: vmi.EvacuationMigrationAnnotation, Value: v.Status.NodeName, Priority: vmi.MigrationSystemCritical,
	}
	if v.Annotations[vmi.EvictionSourceAnnotation] == vmi.EvictionByDescheduler {
		c.Priority = vmi.MigrationSystemMaintenance
	}
	m := move.Own(v, o.Migrations, c)
	return scheduler.Plan{Actions: []scheduler.Action{scheduler.CreateMigration{Migration: m, Why: "the VMI has to leave its node"}}}
}

// leaves says that the VMI has to leave the node that it is on.
func (o Observed) leaves() bool {
	node := o.VMI.Status.NodeName
	return node != "" && (o.VMI.Status.EvacuationNodeName == node || slices.ContainsFunc(o.Taints, func(t corev1.Taint) bool {
		return t.Key == o.Drain && t.Effect == corev1.TaintEffectNoSchedule
	}))
}

// moved says that it is Podvisor that moves the VMI.
func (o Observed) moved() bool {
	s := *defaults.Spec(&o.VMI.Spec, o.Profile).EvictionStrategy
	return s == vmi.EvictionLiveMigrate || s == vmi.EvictionLiveMigrateIfPossible
}
