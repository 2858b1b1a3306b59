package kube

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

// Affinity is the affinity of a pod. Nil stays nil.
func Affinity(a *vmi.Affinity) *corev1.Affinity { return convert[*corev1.Affinity](a) }

// FromAffinity is the affinity of a machine. Nil stays nil.
func FromAffinity(a *corev1.Affinity) *vmi.Affinity { return convert[*vmi.Affinity](a) }

// Tolerations are the tolerations of a pod. Nil stays nil.
func Tolerations(t []vmi.Toleration) []corev1.Toleration { return convert[[]corev1.Toleration](t) }

// FromTolerations are the tolerations of a machine. Nil stays nil.
func FromTolerations(t []corev1.Toleration) []vmi.Toleration { return convert[[]vmi.Toleration](t) }

// TopologySpreadConstraints are the constraints of a pod. Nil stays nil.
func TopologySpreadConstraints(c []vmi.TopologySpreadConstraint) []corev1.TopologySpreadConstraint {
	return convert[[]corev1.TopologySpreadConstraint](c)
}

// FromTopologySpreadConstraints are the constraints of a machine. Nil stays nil.
func FromTopologySpreadConstraints(c []corev1.TopologySpreadConstraint) []vmi.TopologySpreadConstraint {
	return convert[[]vmi.TopologySpreadConstraint](c)
}

// DNSConfig is the DNS configuration of a pod. Nil stays nil.
func DNSConfig(c *vmi.DNSConfig) *corev1.PodDNSConfig { return convert[*corev1.PodDNSConfig](c) }

// FromDNSConfig is the DNS configuration of a machine. Nil stays nil.
func FromDNSConfig(c *corev1.PodDNSConfig) *vmi.DNSConfig { return convert[*vmi.DNSConfig](c) }

// ResourceList are the resources of a container or a claim. Nil stays nil.
func ResourceList(r vmi.ResourceList) corev1.ResourceList { return convert[corev1.ResourceList](r) }

// FromResourceList are the resources of a machine. Nil stays nil.
func FromResourceList(r corev1.ResourceList) vmi.ResourceList { return convert[vmi.ResourceList](r) }

// PersistentVolumeClaimSpec is the spec of a claim. Nil stays nil.
func PersistentVolumeClaimSpec(s *vmi.PersistentVolumeClaimSpec) *corev1.PersistentVolumeClaimSpec {
	return convert[*corev1.PersistentVolumeClaimSpec](s)
}

// FromPersistentVolumeClaimSpec is the claim of a DataVolume. Nil stays nil.
func FromPersistentVolumeClaimSpec(s *corev1.PersistentVolumeClaimSpec) *vmi.PersistentVolumeClaimSpec {
	return convert[*vmi.PersistentVolumeClaimSpec](s)
}

// convert goes through JSON, in which the types are the same: a test holds each
// pair to it, so an error would be a fault of this package.
func convert[To, From any](from From) (to To) {
	data, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(data, &to)
	}
	if err != nil {
		panic(fmt.Sprintf("kube: %T as %T: %v", from, to, err))
	}
	return to
}
