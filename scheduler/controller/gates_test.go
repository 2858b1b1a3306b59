package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAConditionOfAPodIsKnownBeforeTheCacheHasIt(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	shut := corev1.PodCondition{Type: "gate", Status: corev1.ConditionFalse}
	open := corev1.PodCondition{Type: "gate", Status: corev1.ConditionTrue}
	pod := func(c ...corev1.PodCondition) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "a"}, Status: corev1.PodStatus{Conditions: c}}
	}
	var g gates
	require.Nil(t, g.latest(nil, now))
	require.Empty(t, g.latest(pod(), now).Status.Conditions)

	g.Put("a", open, now, gatesFor)
	cached := pod()
	require.Equal(t, []corev1.PodCondition{open}, g.latest(cached, now).Status.Conditions)
	require.Empty(t, cached.Status.Conditions, "the cache's own is not changed")
	require.Equal(t, []corev1.PodCondition{open}, g.latest(pod(shut), now).Status.Conditions)
	require.Empty(t, g.latest(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "b"}}, now).Status.Conditions)

	require.Equal(t, []corev1.PodCondition{open}, g.latest(pod(open), now).Status.Conditions)
	require.Equal(t, []corev1.PodCondition{shut}, g.latest(pod(shut), now).Status.Conditions, "the cache had it, so this is newer")

	g.Put("a", open, now, gatesFor)
	require.Equal(t, []corev1.PodCondition{shut}, g.latest(pod(shut), now.Add(time.Minute)).Status.Conditions, "it was overwritten by another")
	g.Put("a", open, now, gatesFor)
	g.Put("b", open, now.Add(time.Minute), gatesFor)
	require.Equal(t, 1, g.Len(), "what is old is dropped")
}
