package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
)

// onClaim is a VMI with the claim data.
func onClaim(p vmi.Phase) *vmi.VirtualMachineInstance {
	v := stored(p)
	v.Spec.Volumes = []vmi.Volume{{Name: "disk", VolumeSource: vmi.VolumeSource{PersistentVolumeClaim: &vmi.PersistentVolumeClaimVolume{
		PersistentVolumeClaimVolumeSource: corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}}
	return v
}

func TestAVMIWaitsForAPodWithItsClaimWhoseVMIIsGone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*corev1.Pod)
		waits  bool
	}{
		"it runs":                    {func(*corev1.Pod) {}, true},
		"it is being deleted":        {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, true},
		"it has ended":               {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, false},
		"its node is gone":           {func(p *corev1.Pod) { p.Spec.NodeName = "gone" }, false},
		"it has another claim":       {func(p *corev1.Pod) { p.Spec.Volumes[1].PersistentVolumeClaim.ClaimName = "other" }, false},
		"it is in another namespace": {func(p *corev1.Pod) { p.Namespace = "another" }, false},
		"it is no launcher":          {func(p *corev1.Pod) { delete(p.Labels, vmi.AppLabel) }, false},
		"its VMI has this name":      {func(p *corev1.Pod) { p.Annotations[vmi.DomainAnnotation] = "testvmi" }, false},
		"its VMI is this one":        {func(p *corev1.Pod) { p.Labels[vmi.CreatedByLabel] = string(stored("").UID) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := onClaim("")
			r := newRig(t, v)
			p := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: v.Namespace, Name: "virt-launcher-former-abcde", UID: "pod-uid",
					Labels:      map[string]string{vmi.AppLabel: vmi.LauncherApp, vmi.CreatedByLabel: "former-uid"},
					Annotations: map[string]string{vmi.DomainAnnotation: "former"},
				},
				Spec: corev1.PodSpec{NodeName: "n1", Volumes: []corev1.Volume{
					{Name: "sockets", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
					{Name: "disk", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
				}},
				Status: corev1.PodStatus{Phase: corev1.PodRunning},
			}
			tt.change(p)
			(&keeper{}).pod(p)
			require.NoError(t, r.caches.pods.GetIndexer().Add(p))
			sharers, err := r.sharers(t.Context(), v)
			require.NoError(t, err)
			if !tt.waits {
				require.Empty(t, sharers)
				return
			}
			require.Len(t, sharers, 1)
			require.Equal(t, p, sharers[0].Pod)
			require.Equal(t, []string{key}, r.besidePod(p), "it is decided on again when the pod ends")
			plan := instance.Decide(instance.Observed{VMI: v, Sharers: sharers, Config: r.rendering(), Claims: map[string]*corev1.PersistentVolumeClaim{"data": {}}, Now: time.Now()})
			written := plan.Actions[0].(scheduler.WriteStatus[*vmi.VirtualMachineInstance]).Object
			require.Equal(t, instance.ClaimInUse, written.Status.Condition(vmi.ConditionSynchronized).Reason)
			require.Contains(t, written.Status.Condition(vmi.ConditionSynchronized).Message,
				"PersistentVolumeClaim data is a disk of VMI former, which does not exist any more, and whose pod virt-launcher-former-abcde ends")
		})
	}
}
