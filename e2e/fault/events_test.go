package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// mayLoseEvents are the faults by which a process ends or is replaced. The event of what it did
// last ends with it.
var mayLoseEvents = []Kind{Killed, KilledAfter, Replaced}

// events waits until each VMI of the trace has had each of its events once, and that of a pod at
// most once for each of its pods. What could not be written at once is written up to ten seconds later.
func (u *user) events(ctx context.Context, k Kind) error {
	if slices.Contains(mayLoseEvents, k) {
		return nil
	}
	reasons := []string{"SuccessfulCreate"}
	if u.handled {
		reasons = append(reasons, "Started", "Deleted")
	}
	var wrong error
	for end := time.Now().Add(limit / 3); ; {
		l, err := world.kube.CoreV1().Events(u.namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err == nil {
			type key struct {
				uid    types.UID
				reason string
			}
			found := map[key]int{}
			for _, e := range l.Items {
				found[key{e.InvolvedObject.UID, e.Reason}]++
			}
			wrong = nil
			for uid, l := range world.nodes.had(u.namespace) {
				for _, r := range reasons {
					most := 1
					if r == "SuccessfulCreate" {
						most = l.pods // one that moves has others
					}
					if n := found[key{uid, r}]; n < 1 || n > most {
						wrong = errors.Join(wrong, fmt.Errorf("VMI %s (%s) has %d events %s", l.name, uid, n, r))
					}
				}
			}
		}
		if err = errors.Join(err, wrong); err == nil || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// had is a VMI that a namespace has had.
type had struct {
	name string
	pods int
}

// had are all VMIs that a namespace has had.
func (n *nodes) had(namespace string) map[types.UID]had {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := map[types.UID]had{}
	for uid, l := range n.lives[namespace] {
		out[uid] = had{l.name, len(l.pods)}
	}
	return out
}
