package evacuation

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
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
	if v.DeletionTimestamp != nil || v.Status.Phase != vmi.PhaseRunning || !o.leaves() || !o.movable() {
		return scheduler.Plan{}
	}
	if slices.ContainsFunc(o.Migrations, func(m *vmi.VirtualMachineInstanceMigration) bool { return !m.Status.Phase.Final() }) {
		return scheduler.Plan{}
	}
	last := newest(o.Migrations)
	if last != nil && last.Status.Phase == vmi.MigrationPhaseSucceeded && !hasMoved(v, last) {
		return scheduler.Plan{} // the cache has the VMI as it was before
	}
	alive := slices.DeleteFunc(slices.Clone(o.Pods), launched.Ended)
	if len(alive) > 1 {
		return scheduler.Plan{}
	}
	return scheduler.Plan{Actions: []scheduler.Action{scheduler.CreateMigration{Migration: migration(v, last)}}}
}

// newest is the last of the migrations that was made. Nil: there are none.
func newest(all []*vmi.VirtualMachineInstanceMigration) *vmi.VirtualMachineInstanceMigration {
	if len(all) == 0 {
		return nil
	}
	return slices.MaxFunc(all, func(a, b *vmi.VirtualMachineInstanceMigration) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
}

// hasMoved says that the VMI is as the migration, which has succeeded, has left it, or that
// the migration moved an earlier VMI of its name.
func hasMoved(v *vmi.VirtualMachineInstance, m *vmi.VirtualMachineInstanceMigration) bool {
	s := v.Status.MigrationState
	return s != nil && s.MigrationUID == m.UID && s.Completed || m.CreationTimestamp.Before(&v.CreationTimestamp)
}

// leaves says that the VMI has to leave the node that it is on.
func (o Observed) leaves() bool {
	node := o.VMI.Status.NodeName
	return node != "" && (o.VMI.Status.EvacuationNodeName == node || slices.ContainsFunc(o.Taints, func(t corev1.Taint) bool {
		return t.Key == o.Drain && t.Effect == corev1.TaintEffectNoSchedule
	}))
}

// movable says that it is Podvisor that moves the VMI, and that this is possible.
func (o Observed) movable() bool {
	c := o.VMI.Status.Condition(vmi.ConditionLiveMigratable)
	if c == nil || c.Status != corev1.ConditionTrue {
		return false
	}
	s := *defaults.Spec(&o.VMI.Spec, o.Profile).EvictionStrategy
	return s == vmi.EvictionLiveMigrate || s == vmi.EvictionLiveMigrateIfPossible
}

// migration moves the VMI from its node. It is the next after the last, which may be nil.
func migration(v *vmi.VirtualMachineInstance, last *vmi.VirtualMachineInstanceMigration) *vmi.VirtualMachineInstanceMigration {
	unique := string(v.UID)
	if last != nil {
		unique += "/" + string(last.UID)
	}
	sum := sha256.Sum256([]byte(unique))
	m := &vmi.VirtualMachineInstanceMigration{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: v.Namespace, Name: vmi.EvacuationNamePrefix + strings.ToLower(base32.HexEncoding.EncodeToString(sum[:]))[:10],
			Annotations: map[string]string{vmi.EvacuationMigrationAnnotation: v.Status.NodeName},
		},
		Spec: vmi.VirtualMachineInstanceMigrationSpec{VMIName: v.Name, Priority: new(vmi.MigrationSystemCritical)},
	}
	return defaults.Migration(m)
}
