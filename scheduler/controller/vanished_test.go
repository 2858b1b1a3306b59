package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// Whoever removes the finalizer of a VMI and its pod by force leaves a guest of which the API
// server knows nothing.
func TestAVMIWaitsForAGuestOfWhichNeitherVMINorPodIsLeft(t *testing.T) {
	t.Parallel()
	former := vmitest.New(vmitest.WithName("former"), vmitest.WithClaim("disk", "data"))
	former.UID = "former-uid"
	status := func(p vmi.Phase) func(r rig) {
		return func(r rig) {
			v := former.DeepCopy()
			v.Status.Phase, v.Status.NodeName, v.Status.ActivePods = p, "n1", map[types.UID]string{"pod-uid": "n1"}
			require.NoError(t, r.caches.instances.GetIndexer().Add(v))
			r.forgetVanished(v)
		}
	}
	gone := func(r rig) { require.NoError(t, r.caches.instances.GetIndexer().Delete(former)) }
	nothing := func(rig) {}
	lost := func(r rig) { require.NoError(t, r.caches.nodes.GetIndexer().Add(node(corev1.ConditionUnknown))) }
	for name, tt := range map[string]struct {
		change        func(*corev1.Pod)
		before, after func(rig)
		later         time.Duration
		waits         bool
	}{
		"its pod ran":                            {func(*corev1.Pod) {}, nothing, nothing, time.Minute, true},
		"its time is over":                       {func(*corev1.Pod) {}, nothing, nothing, 3 * time.Minute, false},
		"its time is over, and its node is lost": {func(*corev1.Pod) {}, nothing, lost, time.Hour, true},
		"its node is fenced":                     {func(p *corev1.Pod) { p.Spec.NodeName = "gone" }, nothing, nothing, time.Second, false},
		"its pod had ended":                      {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, nothing, nothing, time.Second, false},
		"its launcher never ran":                 {func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }, nothing, nothing, time.Second, false},
		"it had another claim":                   {func(p *corev1.Pod) { p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = "other" }, nothing, nothing, time.Second, false},
		"it was in another namespace":            {func(p *corev1.Pod) { p.Namespace = "another" }, nothing, nothing, time.Second, false},
		"its VMI is there":                       {func(*corev1.Pod) {}, status(vmi.PhaseRunning), nothing, time.Second, false},
		"its VMI is gone since":                  {func(*corev1.Pod) {}, status(vmi.PhaseRunning), gone, time.Second, true},
		"its VMI had ended":                      {func(*corev1.Pod) {}, status(vmi.PhaseFailed), gone, time.Second, false},
		"its VMI had ended and is gone":          {func(*corev1.Pod) {}, func(r rig) { status(vmi.PhaseSucceeded)(r); gone(r) }, nothing, time.Second, false},
		"its VMI has ended since":                {func(*corev1.Pod) {}, nothing, func(r rig) { status(vmi.PhaseSucceeded)(r); gone(r) }, time.Second, false},
		"its VMI had this name":                  {func(p *corev1.Pod) { p.Annotations[vmi.DomainAnnotation] = "testvmi" }, nothing, nothing, time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := onClaim("")
			r := newRig(t, v)
			at := time.Now()
			r.cfg.Now = func() time.Time { return at }
			p := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: v.Namespace, Name: "virt-launcher-former-abcde", UID: "pod-uid",
					Labels:      map[string]string{vmi.AppLabel: vmi.LauncherApp, vmi.CreatedByLabel: "former-uid"},
					Annotations: map[string]string{vmi.DomainAnnotation: "former"},
				},
				Spec: corev1.PodSpec{NodeName: "n1", TerminationGracePeriodSeconds: new(int64(90)), Volumes: []corev1.Volume{
					{Name: "disk", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
				}},
				Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
					{Name: vmi.ComputeContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
				}},
			}
			tt.change(p)
			(&keeper{}).pod(p)
			tt.before(r)
			r.noteVanished(p)
			tt.after(r)
			at = at.Add(tt.later)
			sharers, err := r.sharers(t.Context(), v)
			require.NoError(t, err)
			plan := instance.Decide(instance.Observed{VMI: v, Sharers: sharers, Config: r.rendering(), Claims: map[string]*corev1.PersistentVolumeClaim{"data": {}}, Now: at})
			if !tt.waits {
				require.NotContains(t, plan.String(), "does not exist any more")
				return
			}
			require.Len(t, sharers, 1)
			require.Equal(t, p, sharers[0].Pod)
			require.NotZero(t, plan.Recheck, "nothing else says when it has ended")
			require.Contains(t, plan.String(), "ClaimInUse")
		})
	}
}

func TestAPodThatIsThereHasNotVanished(t *testing.T) {
	t.Parallel()
	r := newRig(t, onClaim(""))
	p := launcher(t)
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "disk", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}})
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: vmi.ComputeContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	require.NoError(t, r.caches.pods.GetIndexer().Add(p))
	r.noteVanished(p)
	require.Zero(t, r.vanished.Len())
	require.NoError(t, r.caches.pods.GetIndexer().Delete(p))
	r.noteVanished(p)
	require.Equal(t, 1, r.vanished.Len())
}
