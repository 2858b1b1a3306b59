package pod

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/vmi"
)

// Role is what a pod is for its VMI, and the object that it is made for. The zero value is
// the role of the pod that the VMI runs in.
type Role struct {
	// Name is the name of the role.
	Name vmi.Role
	// For is the migration of a target, and the launcher pod that an attachment belongs to.
	For Object
}

// Object names an object.
type Object struct {
	Name string
	UID  types.UID
}

// Target is the role of the pod that a migration moves the VMI to.
func Target(m *vmi.VirtualMachineInstanceMigration) Role {
	return Role{vmi.RoleTarget, Object{m.Name, m.UID}}
}

// Attachment is the role of a pod that attaches volumes to a launcher pod of the VMI.
func Attachment(launcher *corev1.Pod) Role {
	return Role{vmi.RoleAttachment, Object{launcher.Name, launcher.UID}}
}

// RoleFor is the role that a pod was made for, with the object that it names.
func RoleFor(p *corev1.Pod) Role {
	if r := launched.Role(p); r != vmi.RoleTarget {
		return Role{Name: r}
	}
	return Role{vmi.RoleTarget, Object{p.Annotations[vmi.MigrationJobAnnotation], types.UID(p.Labels[vmi.MigrationJobLabel])}}
}

// attachmentPrefix begins the names of pods that attach volumes.
const attachmentPrefix = "hp-volume-"

// Metadata is what the pod of the VMI in this role is known by. The name looks generated,
// but is always the same for the same VMI and role: creating a pod twice is impossible,
// whatever a cache says.
func Metadata(v *vmi.VirtualMachineInstance, r Role) metav1.ObjectMeta {
	m := metav1.ObjectMeta{
		Namespace: v.Namespace, GenerateName: generateName(v), Labels: labels(v), Annotations: annotations(v),
		OwnerReferences: []metav1.OwnerReference{owner(v)},
	}
	unique := string(v.UID)
	switch r.Name {
	case vmi.RoleTarget:
		unique += "/" + string(r.For.UID)
		m.Labels[vmi.MigrationJobLabel] = string(r.For.UID)
		m.Annotations[vmi.MigrationJobAnnotation] = r.For.Name
	case vmi.RoleAttachment:
		unique = string(r.For.UID)
		m.GenerateName = attachmentPrefix
		m.Labels = map[string]string{vmi.AppLabel: vmi.AttachmentApp}
		m.Annotations = map[string]string{vmi.OwnerNameAnnotation: v.Name, vmi.OwnerUIDAnnotation: string(v.UID)}
		m.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "Pod", Name: r.For.Name, UID: r.For.UID, Controller: new(true), BlockOwnerDeletion: new(true),
		}}
	}
	m.Name = m.GenerateName + digest(unique, 5)
	return m
}

// wrongRole are the faults of a role that no pod can be rendered for.
func wrongRole(r Role) field.ErrorList {
	path := field.NewPath("role")
	switch {
	case r.Name == vmi.RoleTarget && r.For.UID == "":
		return field.ErrorList{field.Required(path.Child("for"), "a target is made for one migration")}
	case r.Name == vmi.RoleActive, r.Name == vmi.RoleTarget:
		return nil
	}
	// What such a pod runs follows from volumes that are attached, and none is yet.
	return field.ErrorList{field.NotSupported(path, r.Name, []vmi.Role{vmi.RoleActive, vmi.RoleTarget})}
}

// apart keeps a target from the nodes with another pod of the VMI.
func apart(v *vmi.VirtualMachineInstance, r Role, a *corev1.Affinity) *corev1.Affinity {
	if r.Name != vmi.RoleTarget {
		return a
	}
	if a = a.DeepCopy(); a == nil {
		a = &corev1.Affinity{}
	}
	if a.PodAntiAffinity == nil {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	required := &a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	*required = append(*required, corev1.PodAffinityTerm{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{vmi.CreatedByLabel: string(v.UID)}},
		TopologyKey:   corev1.LabelHostname,
	})
	return a
}
