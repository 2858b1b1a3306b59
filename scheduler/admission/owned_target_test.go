package admission_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestAttackATargetPodWithoutItsMigrationIsRefused(t *testing.T) {
	t.Parallel()
	const image, pinned = "registry.example/fedora:40", "registry.example/fedora@sha256:0f3b1d1f5e4e0a2b"
	v := vmitest.New(vmitest.WithContainerDisk("root", image), func(v *vmi.VirtualMachineInstance) {
		v.Status.Phase, v.Status.NodeName, v.Status.ActivePods = vmi.PhaseRunning, "node1", map[types.UID]string{"p1": "node1"}
	})
	other := vmitest.New(vmitest.WithName("other"))
	migration := &vmi.VirtualMachineInstanceMigration{ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: "move", UID: "m1"}}
	migration.Spec.VMIName, migration.Spec.AddedNodeSelector = v.Name, map[string]string{"zone": "a"}
	variant := func(name string, change func(*vmi.VirtualMachineInstanceMigration)) *vmi.VirtualMachineInstanceMigration {
		m := migration.DeepCopy()
		m.Name, m.UID = name, types.UID(name)
		change(m)
		return m
	}
	ended := variant("ended", func(m *vmi.VirtualMachineInstanceMigration) { m.Status.Phase = vmi.MigrationPhaseFailed })
	aborted := variant("aborted", func(m *vmi.VirtualMachineInstanceMigration) {
		m.DeletionTimestamp, m.Finalizers = new(metav1.Now()), []string{"a/b"}
	})
	others := variant("others", func(m *vmi.VirtualMachineInstanceMigration) { m.Spec.VMIName = other.Name })
	source, err := pod.Render(v, rendering)
	require.NoError(t, err)
	source.UID, source.Spec.NodeName = "p1", "node1"
	source.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: vmi.ComputeContainer, VolumeMounts: []corev1.VolumeMountStatus{
		{Name: source.Spec.Volumes[len(source.Spec.Volumes)-1].Name, VolumeStatus: &corev1.VolumeStatus{Image: &corev1.ImageVolumeStatus{ImageRef: pinned}}},
	}}}
	o := reviewer(t, []vmi.Object{v, other, migration, ended, aborted, others}, []runtime.Object{source}...)
	render := func(m *vmi.VirtualMachineInstanceMigration) *corev1.Pod {
		c := rendering
		c.Role, c.Facts.Move = pod.Target(m), pod.MoveOf(m, source, nil)
		p, err := pod.Render(v, c)
		require.NoError(t, err)
		return p
	}
	asked := render(migration)
	require.Equal(t, pinned, asked.Spec.Volumes[len(asked.Spec.Volumes)-1].Image.Reference)
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		says string
	}{
		"as it is rendered":                {asked, ""},
		"of a migration that is not there": {render(variant("gone", func(*vmi.VirtualMachineInstanceMigration) {})), "default/gone does not exist"},
		"of a migration before": {render(variant("move", func(m *vmi.VirtualMachineInstanceMigration) { m.UID = "m0" })),
			"is another one than the one that the pod is for"},
		"of a migration that has ended":      {render(ended), "has ended or is being deleted"},
		"of a migration that is aborted":     {render(aborted), "has ended or is being deleted"},
		"of the migration of another VMI":    {render(others), "is of another VirtualMachineInstance"},
		"that names no migration":            {changed(asked, func(p *corev1.Pod) { delete(p.Annotations, vmi.MigrationJobAnnotation) }), "does not name it"},
		"on a node that it does not ask for": {changed(asked, func(p *corev1.Pod) { delete(p.Spec.NodeSelector, "zone") }), "another spec.nodeSelector[zone]"},
		"with the image of now": {changed(asked, func(p *corev1.Pod) { p.Spec.Volumes[len(p.Spec.Volumes)-1].Image.Reference = image }),
			"another spec.volumes"},
		"that may be beside the first": {changed(asked, func(p *corev1.Pod) { p.Spec.Affinity = nil }), "another spec.affinity"},
	} {
		status, _ := review(t, o, creation(t, tt.pod))
		if tt.says == "" {
			require.Nil(t, status, "a pod %s", name)
			continue
		}
		require.NotNil(t, status, "a pod %s", name)
		require.Contains(t, status.Message, tt.says, "a pod %s", name)
		require.Equal(t, metav1.StatusReasonForbidden, status.Reason, "a pod %s", name)
	}
}

func changed(p *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
	p = p.DeepCopy()
	change(p)
	return p
}
