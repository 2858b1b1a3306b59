package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/handler"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client/informer"
)

// holders are what the guests on the node hold that no second guest may write to, by their
// pods, also of VMIs that are gone since. Whoever removes a VMI without its finalizer, and
// its pod by force, leaves a guest that runs as long as its kubelet gives it, and of which the
// API server knows nothing. The next guest on the node that holds the same waits for its
// end. It is lost with the process: the guard of the next one ends such guests, and none is
// started before.
//
// The zero value is empty. It is safe for concurrent use.
type holders struct {
	mu sync.Mutex
	of map[types.UID]*holder
}

// holder is a pod with a guest.
type holder struct {
	holds  []string
	asking bool
	// asked is when its launcher answered last, and runs what it said.
	asked time.Time
	runs  bool
}

// note notes what the guest in the pod holds.
func (h *holders) note(pod types.UID, holds []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.of == nil:
		h.of = map[types.UID]*holder{}
	case h.of[pod] != nil:
		h.of[pod].holds = holds
		return
	}
	h.of[pod] = &holder{holds: holds}
}

// others are the pods but those that are known.
func (h *holders) others(known map[types.UID]bool) []types.UID {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []types.UID
	for uid := range h.of {
		if !known[uid] {
			out = append(out, uid)
		}
	}
	slices.Sort(out)
	return out
}

// shared is what the pod holds of this. Empty: nothing.
func (h *holders) shared(pod types.UID, holds []string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if of := h.of[pod]; of != nil {
		for _, s := range of.holds {
			if slices.Contains(holds, s) {
				return s
			}
		}
	}
	return ""
}

// drop forgets the pod.
func (h *holders) drop(pod types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.of, pod)
}

// askPeriod is the time between two questions to a launcher whether its guest runs.
const askPeriod = time.Second

// mayRun says whether the guest in the pod may run, and whether its launcher is to be asked.
func (h *holders) mayRun(pod types.UID, now time.Time) (may, ask bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	of := h.of[pod]
	switch fresh := of != nil && now.Sub(of.asked).Abs() < askPeriod; {
	case of == nil:
		return false, false
	case fresh || of.asking:
		return of.runs || !fresh, false
	}
	of.asking = true
	return true, true
}

// answered notes whether the guest in the pod may run.
func (h *holders) answered(pod types.UID, runs bool, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if of := h.of[pod]; of != nil {
		of.asking, of.asked, of.runs = false, now, runs
	}
}

// holds are what of the VMI a guest of its own or of another VMI may write to, beside which no
// second one may: its claims, with their namespace, and its persistent state.
func holds(v *vmi.VirtualMachineInstance) []string {
	var out []string
	for i := range v.Spec.Volumes {
		if name := v.Spec.Volumes[i].Claim(); name != "" {
			out = append(out, "claim "+v.Namespace+"/"+name)
		}
	}
	if v.Spec.Domain.KeepsState() {
		out = append(out, "state "+v.Namespace+"/"+v.Name)
	}
	return out
}

// begins says that the guest may be started next, and was not yet as far as this session
// knows.
func begins(s *handler.Session) bool {
	return s != nil && s.State != nil && s.State.Phase == protocol.Waiting && s.Put == nil
}

// noteHolder notes what the guest of the VMI holds, if it may run on the node.
func (c *Controller) noteHolder(v *vmi.VirtualMachineInstance) {
	all := holds(v)
	if len(all) == 0 {
		return
	}
	for _, p := range handler.Pods(v, c.config.Node) {
		c.holders.note(p.UID, all)
	}
}

// beside is why the guest of the VMI must not start yet: that of another VMI, which is gone
// or has ended, may run on the node and holds the same. Nil: there is none. No launcher is
// waited for: the VMI is queued when one has answered.
func (c *Controller) beside(ctx context.Context, key string, v *vmi.VirtualMachineInstance, pod types.UID) *vmi.Finding {
	all := holds(v)
	if len(all) == 0 {
		return nil
	}
	if !c.guard.compared.Load() {
		return &vmi.Finding{Reason: handler.ReasonClaimInUse, Message: "virt-handler was started and looks for guests on the node whose VMIs are gone: this VMI starts after that"}
	}
	var found *vmi.Finding
	for _, uid := range c.holders.others(c.known()) {
		shared := c.holders.shared(uid, all)
		switch {
		case c.nothingLeft(uid):
			c.holders.drop(uid)
		case uid != pod && shared != "" && found == nil && c.mayRun(ctx, key, uid):
			found = &vmi.Finding{Reason: handler.ReasonClaimInUse, Message: fmt.Sprintf("the guest of a VMI that is gone or has ended may still run in pod %s on this node "+
				"and uses the same %s: this VMI starts when that guest has ended", uid, shared)}
		}
	}
	return found
}

// known are the pods of the VMIs of the node that have not ended.
func (c *Controller) known() map[types.UID]bool {
	out := map[types.UID]bool{}
	for _, i := range []informer.Informer[*vmi.VirtualMachineInstance]{c.instances, c.targets} {
		all, _ := i.Lister().List(labels.Everything()) // it never fails
		for _, v := range all {
			for _, p := range handler.Pods(v, c.config.Node) {
				out[p.UID] = true
			}
		}
	}
	return out
}

// mayRun says whether the guest in the pod of a VMI that is gone may run, and asks its
// launcher.
func (c *Controller) mayRun(ctx context.Context, key string, pod types.UID) bool {
	if c.isOpen(pod) { // it may be put what was decided before
		return true
	}
	may, ask := c.holders.mayRun(pod, c.timing.now())
	if ask {
		c.open.Go(func() {
			runs, answers := true, false
			err := guarded(func() error { runs, answers = c.guard.runs(ctx, c.guard.launcher(pod)); return nil })
			c.holders.answered(pod, err != nil || runs || !answers, c.timing.now())
			c.loop.Add(key)
		})
	}
	return may
}

// isOpen says whether a session with the launcher in the pod is open, as while its last task
// is done.
func (c *Controller) isOpen(pod types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.cancels {
		if s.podUID == pod {
			return true
		}
	}
	return false
}
