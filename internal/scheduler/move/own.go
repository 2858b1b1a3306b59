package move

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// Cause is why Podvisor itself makes a migration.
type Cause struct {
	// Prefix begins the name.
	Prefix string
	// Annotation and Value say the cause in the migration.
	Annotation, Value string
	// Priority is its place in the queue.
	Priority vmi.MigrationPriority
}

// Own is the migration that Podvisor makes of the VMI for the cause, whose migrations are
// these. The name follows from the VMI and the last one: a plan that is made twice, by an
// old cache, makes one.
func Own(v *vmi.VirtualMachineInstance, all []*vmi.VirtualMachineInstanceMigration, c Cause) *vmi.VirtualMachineInstanceMigration {
	unique := string(v.UID)
	if last := Newest(all); last != nil {
		unique += "/" + string(last.UID)
	}
	sum := sha256.Sum256([]byte(unique))
	return defaults.Migration(&vmi.VirtualMachineInstanceMigration{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: v.Namespace, Name: c.Prefix + strings.ToLower(base32.HexEncoding.EncodeToString(sum[:]))[:10],
			Annotations: map[string]string{c.Annotation: c.Value},
		},
		Spec: vmi.VirtualMachineInstanceMigrationSpec{VMIName: v.Name, Priority: new(c.Priority)},
	})
}

// Free says that the VMI runs, can be decoded, and that nothing moves it: all of its
// migrations have ended, what the last one did is seen in the VMI, and only one of its pods
// may run.
func Free(v *vmi.VirtualMachineInstance, pods []*corev1.Pod, all []*vmi.VirtualMachineInstanceMigration) bool {
	if v.DeletionTimestamp != nil || v.Status.Phase != vmi.PhaseRunning || vmi.Unreadable(v) != nil {
		return false
	}
	if slices.ContainsFunc(all, func(m *vmi.VirtualMachineInstanceMigration) bool { return !m.Status.Phase.Final() }) {
		return false
	}
	if last := Newest(all); last != nil && last.Status.Phase == vmi.MigrationPhaseSucceeded && !hasMoved(v, last) {
		return false // the cache has the VMI as it was before
	}
	return len(slices.DeleteFunc(slices.Clone(pods), launched.Ended)) <= 1
}

// Movable says that the VMI can move, by its condition.
func Movable(v *vmi.VirtualMachineInstance) bool {
	c := v.Status.Condition(vmi.ConditionLiveMigratable)
	return c != nil && c.Status == corev1.ConditionTrue
}

// Newest is the last of the migrations that was made. Nil: there are none.
func Newest(all []*vmi.VirtualMachineInstanceMigration) *vmi.VirtualMachineInstanceMigration {
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
