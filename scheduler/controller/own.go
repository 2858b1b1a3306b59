package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/vmi"
)

// ownWrites are machines as the API server answered to the last write, until the
// informer's cache has caught up.
//
// It closes one race: the events of a new pod arrive within milliseconds, often
// before the cache has seen the status that was written beside it. Without it
// such an event would be judged by the old status, and the same write be tried
// once more, in vain. It is not needed for the result: a write with an old
// resourceVersion is refused.
type ownWrites struct {
	mu   sync.Mutex
	objs map[string]*vmi.VirtualMachineInstance
}

// remember keeps the machine as it was answered.
func (w *ownWrites) remember(v *vmi.VirtualMachineInstance) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.objs == nil {
		w.objs = map[string]*vmi.VirtualMachineInstance{}
	}
	w.objs[cache.MetaObjectToName(v).String()] = v
}

// latest is the newer of the cached machine and the remembered one. A machine
// that the cache does not hold is gone.
func (w *ownWrites) latest(key string, cached *vmi.VirtualMachineInstance) *vmi.VirtualMachineInstance {
	w.mu.Lock()
	defer w.mu.Unlock()
	own := w.objs[key]
	if own == nil {
		return cached
	}
	if cached == nil || cached.UID != own.UID || !left(own) && !older(cached, own) {
		delete(w.objs, key)
		return cached
	}
	return own
}

// left says that the machine went with the last write, of which the answer may
// carry the resourceVersion from before.
func left(v *vmi.VirtualMachineInstance) bool {
	return v.DeletionTimestamp != nil && len(v.Finalizers) == 0
}

// older says that a is known to be an earlier state than b.
func older(a, b *vmi.VirtualMachineInstance) bool {
	c, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err == nil && c < 0
}
