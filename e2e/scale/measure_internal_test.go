package scale

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/podvisor/podvisor/vmi/validate"
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

func TestWritesAreRequestsThatChangedSomething(t *testing.T) {
	t.Parallel()
	c := counts{"create pods": 3, "patch pods/status": 2, "patch pods/status answered 409": 5, "get pods": 7, "list pods": 1, "watch pods": 1, "update leases": 9, "events": 4, "delete virtualmachines": 1}
	require.Equal(t, 6, c.writes())
}

func TestAPoolIsOneObjectForAllItsVMs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		names []string
		each  int
	}{"vm": {[]string{"vm-2-0", "vm-2-1"}, 1}, "pool": {[]string{"pool-2"}, 2}} {
		k, err := kindNamed(name)
		require.NoError(t, err)
		names, each := k.objects(2)
		require.Equal(t, tt.names, names)
		require.Equal(t, tt.each, each)
	}
	_, err := kindNamed("set")
	require.EqualError(t, err, `kind "set": give vmi, vm, pool or pod`)
	p := poolOf("pool-2", 2)
	require.Empty(t, validate.Pool(p, validate.User{}, validate.Limits{}))
	require.Equal(t, 2, p.Spec.Wanted())
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
