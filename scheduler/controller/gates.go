package controller

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/expiring"
)

// gatesFor is how long a condition of a pod that was written is taken for the present one
// although the cache does not have it.
const gatesFor = 15 * time.Second

// gates are the conditions of pods that were written last, until the cache has them.
//
// It closes one race: a VMI is decided on again before the cache has its pod's condition,
// which would be written once more.
type gates struct {
	expiring.Map[types.UID, corev1.PodCondition]
}

// latest is the pod with the condition that was written last. What the cache has is
// dropped. Nil stays nil.
func (g *gates) latest(p *corev1.Pod, now time.Time) *corev1.Pod {
	if p == nil {
		return nil
	}
	w, ok := g.Get(p.UID, now)
	if !ok {
		return p
	}
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == w.Type })
	if i >= 0 && p.Status.Conditions[i].Status == w.Status {
		g.Delete(p.UID)
		return p
	}
	p = p.DeepCopy()
	if i >= 0 {
		p.Status.Conditions[i] = w
	} else {
		p.Status.Conditions = append(p.Status.Conditions, w)
	}
	return p
}
