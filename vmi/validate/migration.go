package validate

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

// Migration returns what is wrong with a migration that the user makes, or
// nothing. Whether the VMI can be migrated is checked by [MigrationOf].
func Migration(m *vmi.VirtualMachineInstanceMigration, by User) field.ErrorList {
	at := field.NewPath("spec")
	var l field.ErrorList
	if m.Spec.VMIName == "" {
		l = append(l, field.Required(at.Child("vmiName"), "name the VMI to migrate"))
	}
	l = append(l, labelsOf(at.Child("addedNodeSelector"), m.Spec.AddedNodeSelector)...)
	if p := m.Spec.Priority; p != nil {
		here := at.Child("priority")
		l = append(l, exactlyOneOf(here, *p, vmi.MigrationSystemCritical, vmi.MigrationUserTriggered, vmi.MigrationSystemMaintenance)...)
		if !by.ours() {
			l = append(l, field.Forbidden(here, "is set by Podvisor only: leave it out"))
		}
	}
	return l
}

// MigrationOf returns why the VMI cannot be migrated as the migration asks, or
// nothing: nil is a VMI that does not exist, and others are migrations of the
// namespace, this one among them or not. Clients know the beginnings of the messages.
func MigrationOf(m *vmi.VirtualMachineInstanceMigration, v *vmi.VirtualMachineInstance, others ...vmi.VirtualMachineInstanceMigration) field.ErrorList {
	at, name := field.NewPath("spec", "vmiName"), m.Spec.VMIName
	if v == nil {
		return field.ErrorList{field.Invalid(at, name, "the VMI "+quote(name)+" does not exist in the namespace "+quote(m.Namespace))}
	}
	var l field.ErrorList
	if p := v.Status.Phase; p.Final() || v.DeletionTimestamp != nil {
		l = append(l, field.Invalid(at, name, "Cannot migrate VMI in finalized state. It has ended or is being deleted (phase "+quote(string(p))+")"))
	}
	if c := v.Status.Condition(vmi.ConditionLiveMigratable); c != nil && c.Status == corev1.ConditionFalse {
		l = append(l, field.Invalid(at, name, "Cannot migrate VMI, Reason: "+c.Reason+", Message: "+c.Message))
	}
	for i := range others {
		o := &others[i]
		if o.Spec.VMIName == name && o.Namespace == m.Namespace && o.Name != m.Name && !o.Status.Phase.Final() {
			l = append(l, field.Invalid(at, name, "in-flight migration detected. The migration "+quote(o.Name)+" of this VMI has not ended: wait for it, or delete it to cancel it"))
		}
	}
	return l
}

// MigrationUpdate returns why the user may not change a migration so.
func MigrationUpdate(old, m *vmi.VirtualMachineInstanceMigration) field.ErrorList {
	var l field.ErrorList
	if !equal(old.Spec, m.Spec) {
		l = append(l, whole(field.ErrorTypeNotSupported, "the spec of a migration must not change: make another migration"))
	}
	// The label is how the migrations of a VMI are found.
	was, had := old.Labels[vmi.MigrationSelectorLabel]
	is, has := m.Labels[vmi.MigrationSelectorLabel]
	if had && (!has || was != is) && !m.Status.Phase.Final() {
		l = append(l, whole(field.ErrorTypeNotSupported, "the label "+vmi.MigrationSelectorLabel+" must stay "+quote(was)+" until the migration has ended"))
	}
	return l
}

// labelsOf are the faults of labels that are selected by, which no object could have.
func labelsOf(at *field.Path, all map[string]string) field.ErrorList {
	var l field.ErrorList
	for _, k := range slices.Sorted(maps.Keys(all)) {
		key := at.Key(k)
		l = append(l, invalid(key, k, validation.IsQualifiedName(k))...)
		l = append(l, invalid(key, all[k], validation.IsValidLabelValue(all[k]))...)
	}
	return l
}
