package fault

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// writers are the launchers that have run with a claim: whether each of them still runs, by
// namespace, claim and pod.
type writers struct {
	mu   sync.Mutex
	runs map[string]map[string]map[types.UID]bool
	errs map[string][]error // by namespace: a claim had two at a time
}

func newWriters() *writers {
	return &writers{runs: map[string]map[string]map[types.UID]bool{}, errs: map[string][]error{}}
}

// begin notes that the launcher of the pod runs from now on. It begins once.
func (w *writers) begin(p *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs[p.Namespace] == nil {
		w.runs[p.Namespace] = map[string]map[types.UID]bool{}
	}
	for _, claim := range claims(p) {
		all := w.runs[p.Namespace][claim]
		if all == nil {
			all = map[types.UID]bool{}
			w.runs[p.Namespace][claim] = all
		}
		if _, known := all[p.UID]; known {
			continue
		}
		for other, runs := range all {
			if runs {
				w.errs[p.Namespace] = append(w.errs[p.Namespace], fmt.Errorf("claim %s has two writers at a time: pods %s and %s", claim, other, p.UID))
			}
		}
		all[p.UID] = true
	}
}

// end notes that the launcher of the pod does not run any more.
func (w *writers) end(p *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, claim := range claims(p) {
		if all := w.runs[p.Namespace][claim]; all[p.UID] {
			all[p.UID] = false
		}
	}
}

// oracle says which claims of a namespace had two writers at a time, or not so many one after
// the other as were wanted.
func (w *writers) oracle(namespace string, wanted map[string]int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	had := map[string]int{}
	for claim, all := range w.runs[namespace] {
		had[claim] = len(all)
	}
	err := errors.Join(w.errs[namespace]...)
	if !maps.Equal(had, wanted) {
		err = errors.Join(err, fmt.Errorf("the claims had %v writers, not %v", had, wanted))
	}
	return err
}

func claims(p *corev1.Pod) []string {
	var out []string
	for _, v := range p.Spec.Volumes {
		if c := v.PersistentVolumeClaim; c != nil {
			out = append(out, c.ClaimName)
		}
	}
	return out
}

func TestWritersOfAClaimAreCountedAtAnyTime(t *testing.T) {
	t.Parallel()
	pod := func(uid types.UID) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", UID: uid}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
		}}}
	}
	w := newWriters()
	w.begin(pod("1"))
	w.begin(pod("1"))
	w.end(pod("1"))
	w.begin(pod("1")) // as by an old event
	w.begin(pod("2"))
	require.NoError(t, w.oracle("a", map[string]int{"data": 2}))
	require.EqualError(t, w.oracle("a", map[string]int{"data": 3}), "the claims had map[data:2] writers, not map[data:3]")
	w.begin(pod("3"))
	require.EqualError(t, w.oracle("a", map[string]int{"data": 3}), "claim data has two writers at a time: pods 2 and 3")
	require.NoError(t, w.oracle("b", nil))
}
