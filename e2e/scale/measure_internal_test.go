package scale

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

func TestAStepIsWhatWasUsedSinceItBegan(t *testing.T) {
	t.Parallel()
	before := point{controller: time.Second, rss: 100, requests: map[string]counts{"virt-controller": {"create pods": 2, "events": 1}}}
	after := point{controller: 3 * time.Second, rss: 150, restarts: 1, requests: map[string]counts{
		"virt-controller": {"create pods": 5, "events": 4, "watch pods": 1, "update leases": 7}, "kubelet": {"patch pods/status": 3},
	}}
	s := after.since(before, 9)
	require.Equal(t, step{seconds: 9, controller: 2 * time.Second, rss: 50, restarts: 1, requests: map[string]counts{
		"virt-controller": {"create pods": 3, "events": 3, "watch pods": 1, "update leases": 7}, "kubelet": {"patch pods/status": 3},
	}}, s)
	require.Equal(t, 3, s.requests["virt-controller"].sum(), "events, watches and leases do not count")
}

func TestEventsThatAreMissingOrRepeatedAreCounted(t *testing.T) {
	t.Parallel()
	event := func(name string, uid types.UID, reason string, count int32) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, InvolvedObject: corev1.ObjectReference{UID: uid}, Reason: reason, Count: count}
	}
	r := &rig{kube: fake.NewClientset(
		event("a", "one", "Started", 1), event("b", "one", "Deleted", 1), event("c", "two", "Started", 2),
		event("d", "two", "SyncFailed", 1), event("e", "other", "Started", 1),
	)}
	e, err := r.countEvents(t.Context(), map[types.UID]bool{"one": true, "two": true}, []string{"Started", "Deleted"})
	require.NoError(t, err)
	require.Equal(t, events{made: 4, lost: 1, repeated: 1, others: 1, missing: counts{"Deleted": 1}}, e)
}
