package controller

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ktesting "k8s.io/client-go/testing"

	"github.com/podvisor/podvisor/vmi"
)

// silentRig is a controller with a VMI whose pod waits on its node, and a clock.
func silentRig(t *testing.T, events ...runtime.Object) (r rig, pass func(time.Duration)) {
	t.Helper()
	p := launcher(t)
	p.Spec.NodeName = "n1"
	r = newRig(t, stored(vmi.PhaseScheduling), events...)
	require.NoError(t, r.caches.pods.GetIndexer().Add(p))
	require.NoError(t, r.caches.nodes.GetIndexer().Add(node(corev1.ConditionTrue)))
	clock := time.Now()
	r.cfg.Now = func() time.Time { return clock }
	return r, func(d time.Duration) { clock = clock.Add(d) }
}

func failedMount(at time.Time) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: "e"},
		InvolvedObject: corev1.ObjectReference{UID: "pod-uid"}, Type: corev1.EventTypeWarning, Reason: "FailedMount", Message: `secret "nope" not found`,
		FirstTimestamp: metav1.NewTime(at), LastTimestamp: metav1.NewTime(at),
	}
}

// reads are the lists of events that were requested.
func (r rig) reads() (selectors []string) {
	for _, a := range r.kube.Actions() {
		if l, ok := a.(ktesting.ListAction); ok && a.GetResource().Resource == "events" {
			selectors = append(selectors, l.GetListRestrictions().Fields.String())
		}
	}
	return selectors
}

func (r rig) again(t *testing.T) time.Duration {
	t.Helper()
	after, err := r.reconcile(t.Context(), key)
	require.NoError(t, err)
	return after
}

func TestTheEventsOfASilentPodAreReadAfterATimeAndSayWhy(t *testing.T) {
	t.Parallel()
	r, pass := silentRig(t, failedMount(time.Now()))
	require.Equal(t, 2*time.Second, r.again(t))
	pass(1500 * time.Millisecond)
	require.Equal(t, 500*time.Millisecond, r.again(t))
	require.Empty(t, r.reads(), "a pod that starts soon costs no request")
	pass(500 * time.Millisecond)
	require.Equal(t, 2*time.Second, r.again(t))
	require.Equal(t, []string{"involvedObject.uid=pod-uid"}, r.reads())
	require.Equal(t, "FailedMount", r.server.vmi.Status.Reason)
	require.Equal(t, `secret "nope" not found`, r.server.vmi.Status.Condition(vmi.ConditionReady).Message)
	r.again(t)
	require.Len(t, r.reads(), 1, "another decision reads nothing")
}

func TestAPodThatStartsIsForgotten(t *testing.T) {
	t.Parallel()
	r, _ := silentRig(t)
	r.again(t)
	require.Equal(t, 1, r.silences.Len())
	p := r.caches.pods.GetIndexer().List()[0].(*corev1.Pod).DeepCopy()
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: vmi.ComputeContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	require.NoError(t, r.caches.pods.GetIndexer().Update(p))
	r.again(t)
	require.Zero(t, r.silences.Len())
}

func TestEventsThatCannotBeReadStopNothing(t *testing.T) {
	t.Parallel()
	r, pass := silentRig(t)
	r.kube.PrependReactor("list", "events", func(ktesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("forbidden") })
	r.again(t)
	pass(3 * time.Second)
	require.Equal(t, 2*time.Second, r.again(t))
	require.Len(t, r.reads(), 1)
}

func TestManySilentPodsShareABudget(t *testing.T) {
	t.Parallel()
	r, pass := silentRig(t)
	r.eventReads = newBudget(0.001, 0, readWait) // other pods have used it up
	r.again(t)
	pass(3 * time.Second)
	require.Equal(t, 2*time.Second, r.again(t), "it is tried again soon")
	require.Empty(t, r.reads())
}
