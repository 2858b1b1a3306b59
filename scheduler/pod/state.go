package pod

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

// stateClaimPrefix begins the names of the claims for the state of VMIs.
const stateClaimPrefix = "persistent-state-for-"

// stateSize is the size of the claim for the state of a VMI, as in KubeVirt. The
// variables of the firmware and a TPM take less than 1 MiB.
var stateSize = resource.MustParse("10Mi")

// stateClaimName is the name of the claim for the state of the VMI or VM of this name:
// what outlasts a VMI besides its disks. It is KubeVirt's, up to 253 characters.
func stateClaimName(name string) string {
	const most = 253
	if claim := stateClaimPrefix + name; len(claim) <= most {
		return claim
	}
	return (stateClaimPrefix + name)[:most-9] + "-" + digest(name, 8)
}

// StateClaim returns the claim for what outlasts v besides its disks: the first one, or, with
// the role of a target, the one that its migration moves v to. It lives as long as the VM that
// controls v, or as v if there is none.
func StateClaim(v *vmi.VirtualMachineInstance, c Config) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{
			Name:            stateClaimName(v.Name),
			Namespace:       v.Namespace,
			Labels:          map[string]string{vmi.StateLabel: id(v.Name)},
			OwnerReferences: []metav1.OwnerReference{stateOwner(v)},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			VolumeMode:  new(corev1.PersistentVolumeFilesystem),
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: stateSize}},
		},
	}
	if class := c.Cluster.Pods.StateStorageClass; class != "" {
		claim.Spec.StorageClassName = &class
	}
	if c.Role.Name == vmi.RoleTarget {
		claim.Name = stateClaimName(v.Name + "-" + digest(string(c.Role.For.UID), 8))
		claim.Labels = map[string]string{vmi.MigrationNameLabel: id(c.Role.For.Name)}
		claim.Annotations = map[string]string{vmi.StateMigrationAnnotation: string(c.Role.For.UID)}
	}
	return claim
}

// stateClaim is the name of the claim that the pod of v has.
func (c Config) stateClaim(v *vmi.VirtualMachineInstance) string {
	if c.Role.Name != vmi.RoleTarget && c.Facts.State != nil {
		return c.Facts.State.Name
	}
	return StateClaim(v, c).Name
}

// requiresState says that the launcher must find the state in the claim: it came by a migration,
// or did not come.
func (c Config) requiresState(v *vmi.VirtualMachineInstance) bool {
	return v.Spec.Domain.KeepsState() && c.Role.Name != vmi.RoleTarget && c.Facts.State != nil && c.Facts.State.Annotations[vmi.StateMigrationAnnotation] != ""
}

// stateOwner is what the claim for the state of v goes with.
func stateOwner(v *vmi.VirtualMachineInstance) metav1.OwnerReference {
	ref := metav1.GetControllerOfNoCopy(v)
	if ref == nil || ref.Kind != vmi.VirtualMachines.Kind {
		own := owner(v)
		ref = &own
	}
	return metav1.OwnerReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: ref.UID}
}
