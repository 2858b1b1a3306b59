package instance_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// claimOf is a claim that asks for 1 GiB.
func claimOf(name string, change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	for _, f := range change {
		f(c)
	}
	return c
}

func TestAVMIWaitsForItsClaims(t *testing.T) {
	t.Parallel()
	v := stored(vmi.PhaseUnset, vmitest.WithClaim("data", "data"), vmitest.WithClaim("more", "other"))
	o := observe(v)
	o.Claims = map[string]*corev1.PersistentVolumeClaim{"data": nil, "other": claimOf("other")}
	p := instance.Decide(o)
	s := statusOf(t, p)
	require.Equal(t, vmi.PhasePending, s.Phase)
	c := s.Condition(vmi.ConditionSynchronized)
	require.Equal(t, instance.FailedPvcNotFound, c.Reason)
	require.Equal(t, "volume data: PersistentVolumeClaim data does not exist in namespace default: create it, and the VMI starts", c.Message)
	events := 0
	for _, a := range p.Actions {
		if e, ok := a.(scheduler.Emit); ok && e.Warning {
			events++
		}
	}
	require.Equal(t, 1, events)

	v.Status = s
	require.Empty(t, instance.Decide(o).Actions, "it is said once")

	// A pod with it would get no node, and nothing would say why once it is gone.
	o.Claims["data"] = claimOf("data", func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{Time: o.Now} })
	s = statusOf(t, instance.Decide(o))
	c = s.Condition(vmi.ConditionSynchronized)
	require.Equal(t, instance.FailedPvcNotFound, c.Reason)
	require.Equal(t, "volume data: PersistentVolumeClaim data in namespace default is being deleted: create it, and the VMI starts", c.Message)

	o.Claims["data"] = claimOf("data") // which waits for its first consumer: the pod
	p = instance.Decide(o)
	require.IsType(t, scheduler.CreatePod{}, p.Actions[0])
	require.Equal(t, vmi.PhaseScheduling, statusOf(t, p).Phase)
	require.Nil(t, func() *vmi.Condition { s := statusOf(t, p); return s.Condition(vmi.ConditionSynchronized) }())
}

func TestTheHandOverSaysWhatTheClaimsAre(t *testing.T) {
	t.Parallel()
	v := stored(vmi.PhaseScheduling, vmitest.WithClaim("data", "data"), vmitest.WithClaim("device", "device"))
	o := observe(v, launcher(bound, running))
	o.Claims = map[string]*corev1.PersistentVolumeClaim{
		"data": claimOf("data", func(c *corev1.PersistentVolumeClaim) {
			c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
			c.Annotations = map[string]string{"cdi.kubevirt.io/storage.preallocation": "true"}
		}),
		"device": claimOf("device", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }),
	}
	s := statusOf(t, instance.Decide(o))
	require.Equal(t, vmi.PhaseScheduled, s.Phase)
	require.Equal(t, []vmi.VolumeStatus{
		{Name: "data", PersistentVolumeClaimInfo: &vmi.PersistentVolumeClaimInfo{
			ClaimName: "data", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeMode: new(corev1.PersistentVolumeFilesystem),
			Capacity: o.Claims["data"].Status.Capacity, Requests: o.Claims["data"].Spec.Resources.Requests, FilesystemOverhead: new("0.055"), Preallocated: true,
		}},
		{Name: "device", PersistentVolumeClaimInfo: &vmi.PersistentVolumeClaimInfo{
			ClaimName: "device", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeMode: new(corev1.PersistentVolumeBlock),
			Requests: o.Claims["device"].Spec.Resources.Requests,
		}},
	}, s.VolumeStatus)
}

func TestTheSizeOfAClaimThatGrewIsWrittenOnce(t *testing.T) {
	t.Parallel()
	v := stored(vmi.PhaseRunning, vmitest.WithClaim("data", "data"))
	v.Status.VolumeStatus = []vmi.VolumeStatus{{Name: "seed", Target: "vda"}, {Name: "data", Target: "vdb", PersistentVolumeClaimInfo: &vmi.PersistentVolumeClaimInfo{
		ClaimName: "data", Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
	}}}
	ready(v)
	p := launcher(bound, running)
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: vmi.PodConditionUnpaused, Status: corev1.ConditionTrue}}
	o := observe(v, p)
	has := func(size string) {
		o.Claims = map[string]*corev1.PersistentVolumeClaim{"data": claimOf("data", func(c *corev1.PersistentVolumeClaim) {
			c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
		})}
	}
	for _, same := range []string{"1Gi", "512Mi"} {
		has(same)
		require.Empty(t, instance.Decide(o).Actions, same)
	}
	has("2Gi")
	s := statusOf(t, instance.Decide(o))
	require.Equal(t, "vdb", s.VolumeStatus[1].Target)
	require.Equal(t, "2Gi", s.VolumeStatus[1].PersistentVolumeClaimInfo.Capacity.Storage().String())
	require.Nil(t, s.VolumeStatus[0].PersistentVolumeClaimInfo)
	o.VMI.Status = s
	require.Empty(t, instance.Decide(o).Actions)
}
