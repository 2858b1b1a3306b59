package launched

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
)

// State is the claim that a start of a VMI uses for its state, of claims of its namespace: the
// last one that was made, of those with the label that a claim which is made for it now has. One
// that is being deleted is it only if there is no other. Nil: there is none.
func State(now *corev1.PersistentVolumeClaim, claims []*corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	var last *corev1.PersistentVolumeClaim
	for _, c := range claims {
		if c.Labels[vmi.StateLabel] == now.Labels[vmi.StateLabel] && (last == nil || follows(c, last)) {
			last = c
		}
	}
	return last
}

// follows says that a rather than b is the claim of the two that a start uses.
func follows(a, b *corev1.PersistentVolumeClaim) bool {
	if x, y := a.DeletionTimestamp == nil, b.DeletionTimestamp == nil; x != y {
		return x
	}
	if n := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); n != 0 {
		return n > 0
	}
	return a.Name > b.Name
}

// StateClaim is the name of the claim for the state of a VMI that the pod has. Empty: it has none.
func StateClaim(p *corev1.Pod) string {
	i := slices.IndexFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume.StateVolume && v.PersistentVolumeClaim != nil })
	if i < 0 {
		return ""
	}
	return p.Spec.Volumes[i].PersistentVolumeClaim.ClaimName
}
