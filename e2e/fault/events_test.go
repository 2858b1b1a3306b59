package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
)

// mayLoseEvents are the faults after which a process does not know what it did last: it ended, it
// was replaced, or a connection was closed before the answer to a write. The event of that may be
// missing.
var mayLoseEvents = []Kind{Killed, KilledAfter, Replaced, Lost, Refused, Certificate}

// events waits until each VMI of the lives has had each of its events, and no more than one for each
// of its pods. What could not be written at once is written up to ten seconds later. One that was
// replaced acts until it has seen that, so both may have found the same thing to do.
func (u *user) events(ctx context.Context, lives []life, k Kind) error {
	least, leaders := 1, 1
	if slices.Contains(mayLoseEvents, k) {
		least = 0
	}
	if k == Replaced {
		leaders = 2
	}
	var wrong error
	for w := newWait(); ; {
		l, err := world.kube.CoreV1().Events(u.namespace).List(ctx, metav1.ListOptions{})
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
			for _, l := range lives {
				most := map[string]int{}
				if len(l.pods) > 0 {
					most["SuccessfulCreate"] = len(l.pods) // one that moves has others
				}
				if u.handled && slices.Contains(l.phases, vmi.PhaseRunning) {
					most["Started"], most["Deleted"] = 1, 1
				}
				for reason, most := range most {
					if n := found[key{l.uid, reason}]; n < least || n > leaders*most {
						wrong = errors.Join(wrong, fmt.Errorf("VMI %s (%s) with phases %q and %d pods has %d events %s", l.name, l.uid, l.phases, len(l.pods), n, reason))
					}
				}
			}
		}
		if err = errors.Join(err, wrong); err == nil || w.over() {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}
