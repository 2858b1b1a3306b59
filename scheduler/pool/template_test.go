package pool_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/scheduler/pool"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

func TestTheOrdinalEndsTheNamesOfConfigMapsAndSecretsWhereItIsAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	ref := func(name string) *corev1.LocalObjectReference { return &corev1.LocalObjectReference{Name: name} }
	w.pool.Spec.VirtualMachineTemplate.Spec.Template.Spec.Volumes = []vmi.Volume{
		{Name: "a", VolumeSource: vmi.VolumeSource{ConfigMap: &vmi.ConfigMapVolume{LocalObjectReference: *ref("c")}}},
		{Name: "b", VolumeSource: vmi.VolumeSource{Secret: &vmi.SecretVolume{SecretName: "s"}}},
		{Name: "c", VolumeSource: vmi.VolumeSource{Sysprep: &vmi.Sysprep{ConfigMap: ref("c"), Secret: ref("s")}}},
		{Name: "d", VolumeSource: vmi.VolumeSource{CloudInitNoCloud: &vmi.CloudInitNoCloud{UserDataSecretRef: ref("s"), NetworkDataSecretRef: ref("n")}}},
		{Name: "e", VolumeSource: vmi.VolumeSource{CloudInitConfigDrive: &vmi.CloudInitConfigDrive{UserDataSecretRef: ref("s")}}},
		{Name: "f", VolumeSource: vmi.VolumeSource{PersistentVolumeClaim: &vmi.PersistentVolumeClaimVolume{}}},
	}
	names := func() []string {
		v, err := pool.VM(w.pool, 7)
		require.NoError(t, err)
		require.Equal(t, "web-7", v.Name)
		all := v.Spec.Template.Spec.Volumes
		return []string{
			all[0].ConfigMap.Name, all[1].Secret.SecretName, all[2].Sysprep.ConfigMap.Name, all[2].Sysprep.Secret.Name,
			all[3].CloudInitNoCloud.UserDataSecretRef.Name, all[3].CloudInitNoCloud.NetworkDataSecretRef.Name, all[4].CloudInitConfigDrive.UserDataSecretRef.Name,
		}
	}
	require.Equal(t, []string{"c", "s", "c", "s", "s", "n", "s"}, names())
	before, err := pool.Revision(w.pool)
	require.NoError(t, err)
	w.pool.Spec.NameGeneration = &vmpool.NameGeneration{AppendIndexToConfigMapRefs: new(true)}
	require.Equal(t, []string{"c-7", "s", "c-7", "s", "s", "n", "s"}, names())
	after, err := pool.Revision(w.pool)
	require.NoError(t, err)
	require.NotEqual(t, before.Name, after.Name, "the VMs are others")
	w.pool.Spec.NameGeneration = &vmpool.NameGeneration{AppendIndexToSecretRefs: new(true)}
	require.Equal(t, []string{"c", "s-7", "c", "s-7", "s-7", "n-7", "s-7"}, names())
	require.Equal(t, "c", w.pool.Spec.VirtualMachineTemplate.Spec.Template.Spec.Volumes[0].ConfigMap.Name, "the pool is not changed")
}

func TestTheOrdinalIsInTheName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	for name, want := range map[string]int{"web-0": 0, "web-12": 12, "web-01": -1, "web-": -1, "web": -1, "web--1": -1, "web-a": -1, "webs-1": -1, "web-+1": -1} {
		require.Equal(t, want, pool.Ordinal(w.pool, name), name)
	}
}

func TestAVMHasNoLabelThatOnlyPodvisorWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	t1 := w.pool.Spec.VirtualMachineTemplate
	t1.ObjectMeta.Labels = map[string]string{"app": "web", vmi.NodeNameLabel: "n"}
	t1.Spec.Template.ObjectMeta.Labels = map[string]string{vmi.NodeNameLabel: "n"}
	v, err := pool.VM(w.pool, 0)
	require.NoError(t, err)
	require.NotContains(t, v.Labels, vmi.NodeNameLabel)
	require.NotContains(t, v.Spec.Template.ObjectMeta.Labels, vmi.NodeNameLabel)
	require.Equal(t, v.Labels[vmi.PoolRevisionLabel], v.Spec.Template.ObjectMeta.Labels[vmi.PoolRevisionLabel])
}
