package pod_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

var (
	migration = &vmi.VirtualMachineInstanceMigration{ObjectMeta: metav1.ObjectMeta{Name: "move", UID: "m1"}}
	launcher  = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "virt-launcher-testvmi-abcde", UID: "p1"}}
)

func TestWhatAPodIsKnownByFollowsFromTheVMIAndItsRole(t *testing.T) {
	t.Parallel()
	v := vmitest.New(vmitest.WithLabel("app", "web"))
	owner := []metav1.OwnerReference{*metav1.NewControllerRef(v, vmi.VirtualMachineInstances.GroupVersionKind)}
	for _, tt := range []struct {
		name, prefix string
		role         pod.Role
		is           vmi.Role
		labels       map[string]string
		annotations  map[string]string
		owners       []metav1.OwnerReference
	}{
		{"the active pod", "virt-launcher-testvmi-", pod.Role{}, vmi.RoleActive, map[string]string{
			"app": "web", vmi.AppLabel: vmi.LauncherApp, vmi.CreatedByLabel: string(v.UID), vmi.MigrationJobLabel: "",
		}, map[string]string{vmi.DomainAnnotation: "testvmi", "kubevirt.io/migrationJobName": ""}, owner},
		{"a target", "virt-launcher-testvmi-", pod.Target(migration), vmi.RoleTarget, map[string]string{
			"app": "web", vmi.AppLabel: vmi.LauncherApp, vmi.CreatedByLabel: string(v.UID), "kubevirt.io/migrationJobUID": "m1",
		}, map[string]string{vmi.DomainAnnotation: "testvmi", "kubevirt.io/migrationJobName": "move"}, owner},
		{"an attachment", "hp-volume-", pod.Attachment(launcher), vmi.RoleAttachment, map[string]string{
			"app": "", "kubevirt.io": "hotplug-disk", vmi.CreatedByLabel: "",
		}, map[string]string{"kubevirt.io/owner-vmi-name": "testvmi", "kubevirt.io/owner-vmi-uid": string(v.UID)}, []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Pod", Name: launcher.Name, UID: "p1", Controller: new(true), BlockOwnerDeletion: new(true)},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := pod.Metadata(v, tt.role)
			require.Equal(t, tt.prefix, m.GenerateName)
			require.Regexp(t, "^"+tt.prefix+"[0-9a-v]{5}$", m.Name)
			require.Equal(t, v.Namespace, m.Namespace)
			require.Equal(t, tt.owners, m.OwnerReferences)
			for k, want := range tt.labels {
				require.Equal(t, want, m.Labels[k], k)
			}
			for k, want := range tt.annotations {
				require.Equal(t, want, m.Annotations[k], k)
			}
			require.Equal(t, tt.is, launched.Role(&corev1.Pod{ObjectMeta: m}))
			require.Equal(t, m, pod.Metadata(v, tt.role), "it is always the same")
		})
	}
}

func TestEachPodOfAVMIHasANameOfItsOwn(t *testing.T) {
	t.Parallel()
	v, other := vmitest.New(vmitest.WithName(strings.Repeat("x", 253))), vmitest.New(vmitest.WithName(strings.Repeat("x", 253)))
	other.UID = "another"
	second, elsewhere := migration.DeepCopy(), launcher.DeepCopy()
	second.UID, elsewhere.UID = "m2", "p2"
	names := map[string]bool{}
	for _, m := range []metav1.ObjectMeta{
		pod.Metadata(v, pod.Role{}), pod.Metadata(other, pod.Role{}), pod.Metadata(v, pod.Target(migration)), pod.Metadata(v, pod.Target(second)),
		pod.Metadata(other, pod.Target(migration)), pod.Metadata(v, pod.Attachment(launcher)), pod.Metadata(v, pod.Attachment(elsewhere)),
	} {
		require.False(t, names[m.Name], m.Name)
		names[m.Name] = true
		require.LessOrEqual(t, len(m.Name), 253)
	}
	require.Equal(t, pod.Name(v), pod.Metadata(v, pod.Role{}).Name)
}

func TestATargetIsTheActivePodButForItsRole(t *testing.T) {
	t.Parallel()
	affinity := &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, TopologyKey: "zone"},
	}}}
	v := vmitest.New(vmitest.WithMasquerade("default"), with(func(v *vmi.VirtualMachineInstance) { v.Spec.Affinity = affinity.DeepCopy() }))
	active, err := pod.Render(v, config)
	require.NoError(t, err)
	c := config
	c.Role = pod.Target(migration)
	target, err := pod.Render(v, c)
	require.NoError(t, err)
	require.Equal(t, affinity, v.Spec.Affinity, "the VMI is not changed")

	terms := target.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	require.Len(t, terms, 2, "and not on a node with another pod of the VMI")
	require.Equal(t, corev1.PodAffinityTerm{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubevirt.io/created-by": string(v.UID)}}, TopologyKey: "kubernetes.io/hostname",
	}, terms[1])
	target.Spec.Affinity = active.Spec.Affinity
	require.Equal(t, active.Spec, target.Spec)
	require.True(t, launched.Owned(target, v))
	require.Equal(t, launched.MemoryOverhead(active), launched.MemoryOverhead(target))
}

func TestATargetWhoseGuestIsAskedByItsAddressWaitsForItFirst(t *testing.T) {
	t.Parallel()
	http := &vmi.Probe{ProbeHandler: vmi.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}}}
	tcp := &vmi.Probe{ProbeHandler: vmi.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(22)}}}
	ping := &vmi.Probe{ProbeHandler: vmi.ProbeHandler{GuestAgentPing: &vmi.GuestAgentPing{}}}
	exec := &vmi.Probe{ProbeHandler: vmi.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
	for name, tt := range map[string]struct {
		liveness, readiness *vmi.Probe
		waits               bool
	}{
		"an HTTP liveness probe":            {liveness: http, waits: true},
		"a TCP liveness probe":              {liveness: tcp, readiness: http, waits: true},
		"the launcher answers for an agent": {liveness: ping},
		"the launcher answers a command":    {liveness: exec},
		"an HTTP readiness probe":           {readiness: http, waits: true},
		"an agent makes it ready":           {readiness: ping},
		"no probe":                          {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := vmitest.New(vmitest.WithMasquerade("default"), with(func(v *vmi.VirtualMachineInstance) {
				v.Spec.LivenessProbe, v.Spec.ReadinessProbe = tt.liveness.DeepCopy(), tt.readiness.DeepCopy()
			}))
			active, err := pod.Render(v, config)
			require.NoError(t, err)
			require.Nil(t, active.Spec.Containers[0].StartupProbe, "the guest of an active pod is asked from its start on")
			c := config
			c.Role = pod.Target(migration)
			target, err := pod.Render(v, c)
			require.NoError(t, err)
			got := target.Spec.Containers[0]
			require.Equal(t, active.Spec.Containers[0].LivenessProbe, got.LivenessProbe)
			if tt.readiness != nil {
				require.Equal(t, int32(10), active.Spec.Containers[0].ReadinessProbe.InitialDelaySeconds)
				require.Zero(t, got.ReadinessProbe.InitialDelaySeconds, "the guest has booted elsewhere")
				got.ReadinessProbe.InitialDelaySeconds = 10
			}
			require.Equal(t, active.Spec.Containers[0].ReadinessProbe, got.ReadinessProbe)
			more := launched.MemoryOverhead(target).Value() - launched.MemoryOverhead(active).Value()
			if !tt.waits {
				require.Nil(t, got.StartupProbe)
				require.Zero(t, more)
				return
			}
			require.Equal(t, []string{"/usr/bin/virt-launcher", "probe", "arrived", "--timeout", "5m0s"}, got.StartupProbe.Exec.Command)
			require.Equal(t, int32(301), got.StartupProbe.TimeoutSeconds, "it ends by itself")
			require.Equal(t, int32(1), got.StartupProbe.PeriodSeconds)
			require.Equal(t, int32(math.MaxInt32), got.StartupProbe.FailureThreshold)
			require.Equal(t, int64(8<<20), more, "it is a process")
		})
	}
}

func TestALabelOfAVMIMakesItsPodNoTarget(t *testing.T) {
	t.Parallel()
	p, err := pod.Render(vmitest.New(vmitest.WithLabel(vmi.MigrationJobLabel, "forged")), config)
	require.NoError(t, err)
	require.NotContains(t, p.Labels, vmi.MigrationJobLabel)
}

func TestAPodOfARoleThatIsNotServedIsRefused(t *testing.T) {
	t.Parallel()
	for want, role := range map[string]pod.Role{
		"role: Unsupported value: \"Attachment\"": pod.Attachment(launcher),
		"role.for: Required value":                {Name: vmi.RoleTarget},
	} {
		c := config
		c.Role = role
		_, err := pod.Render(vmitest.New(), c)
		require.ErrorIs(t, err, vmi.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
}
