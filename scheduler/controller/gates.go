package controller

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// gatesFor is how long a condition of a pod that was written is taken for the present one
// although the cache does not have it.
const gatesFor = 15 * time.Second

// gates are the conditions of pods that were written last, until the cache has them. The
// zero value is empty. It is safe for concurrent use.
//
// It closes one race: a VMI is decided on again before the cache has its pod's condition,
// which would be written once more.
type gates struct {
	mu    sync.Mutex
	wrote map[types.UID]wroteCondition
}

type wroteCondition struct {
	corev1.PodCondition
	until time.Time
}

// note keeps a condition of the pod with this UID that was written now.
func (g *gates) note(pod types.UID, c corev1.PodCondition, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wrote == nil {
		g.wrote = map[types.UID]wroteCondition{}
	}
	for other, w := range g.wrote {
		if now.After(w.until) {
			delete(g.wrote, other)
		}
	}
	g.wrote[pod] = wroteCondition{c, now.Add(gatesFor)}
}

// latest is the pod with the condition that was written last. What the cache has is
// dropped. Nil stays nil.
func (g *gates) latest(p *corev1.Pod, now time.Time) *corev1.Pod {
	if p == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	w, ok := g.wrote[p.UID]
	if !ok {
		return p
	}
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == w.Type })
	if now.After(w.until) || i >= 0 && p.Status.Conditions[i].Status == w.Status {
		delete(g.wrote, p.UID)
		return p
	}
	p = p.DeepCopy()
	if i >= 0 {
		p.Status.Conditions[i] = w.PodCondition
	} else {
		p.Status.Conditions = append(p.Status.Conditions, w.PodCondition)
	}
	return p
}
