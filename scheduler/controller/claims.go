package controller

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/expiring"
)

// claimsFor is how long a claim that was written is taken for the present one although the cache
// does not have it.
const claimsFor = 15 * time.Second

// claims are the claims that were written last, until the cache has them. Nil: the claim was
// deleted.
//
// It closes one race: a VMI is decided on again before the cache has its claim, which would be
// written once more.
type claims struct {
	expiring.Map[types.UID, *corev1.PersistentVolumeClaim]
}

// latest is the claim with the labels that were written last.
func (k *claims) latest(c *corev1.PersistentVolumeClaim, now time.Time) *corev1.PersistentVolumeClaim {
	w, ok := k.Get(c.UID, now)
	switch {
	case !ok:
		return c
	case w != nil && maps.Equal(w.Labels, c.Labels), w == nil && c.DeletionTimestamp != nil:
		k.Delete(c.UID)
		return c
	}
	c = c.DeepCopy()
	if w == nil {
		c.DeletionTimestamp = &metav1.Time{} // no clock that is known says when
	} else {
		c.Labels = w.Labels
	}
	return c
}
