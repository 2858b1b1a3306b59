package pool_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/pool"
	"github.com/podvisor/podvisor/scheduler/vm"
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

func TestTheOrdinalEndsTheNamesOfDataVolumes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	s := &w.pool.Spec.VirtualMachineTemplate.Spec
	s.DataVolumeTemplates = []vmi.DataVolumeTemplate{
		{ObjectMeta: metav1.ObjectMeta{Name: "root", Annotations: map[string]string{vm.KeptAnnotation: "true", "note": "kept"}}}, {ObjectMeta: metav1.ObjectMeta{Name: "data"}},
	}
	claim := func(name string) *vmi.PersistentVolumeClaimVolume {
		return &vmi.PersistentVolumeClaimVolume{PersistentVolumeClaimVolumeSource: corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
	}
	s.Template.Spec.Volumes = []vmi.Volume{
		{Name: "root", VolumeSource: vmi.VolumeSource{DataVolume: &vmi.DataVolumeVolume{Name: "root"}}},
		{Name: "data", VolumeSource: vmi.VolumeSource{PersistentVolumeClaim: claim("data")}},
		{Name: "shared", VolumeSource: vmi.VolumeSource{PersistentVolumeClaim: claim("shared")}},
		{Name: "others", VolumeSource: vmi.VolumeSource{DataVolume: &vmi.DataVolumeVolume{Name: "others"}}},
	}
	for name, tt := range map[string]struct {
		strategy *vmpool.PoolScaleInStrategy
		kept     bool
	}{
		"nothing is said":    {nil, false},
		"they go":            {&vmpool.PoolScaleInStrategy{Proactive: &vmpool.PoolProactiveScaleIn{StatePreservation: new(vmpool.PreserveNothing)}}, false},
		"they stay":          {&vmpool.PoolScaleInStrategy{Proactive: &vmpool.PoolProactiveScaleIn{StatePreservation: new(vmpool.PreserveOffline)}}, true},
		"they stay, of some": {&vmpool.PoolScaleInStrategy{Opportunistic: &vmpool.PoolOpportunisticScaleIn{StatePreservation: new(vmpool.PreserveOffline)}}, true},
	} {
		w.pool.Spec.ScaleInStrategy = tt.strategy
		v, err := pool.VM(w.pool, 7)
		require.NoError(t, err)
		all, disks := v.Spec.Template.Spec.Volumes, v.Spec.DataVolumeTemplates
		require.Equal(t, []string{"root-7", "data-7", "root-7", "data-7", "shared", "others"}, []string{disks[0].ObjectMeta.Name, disks[1].ObjectMeta.Name,
			all[0].DataVolume.Name, all[1].PersistentVolumeClaim.ClaimName, all[2].PersistentVolumeClaim.ClaimName, all[3].DataVolume.Name})
		require.Equal(t, "kept", disks[0].ObjectMeta.Annotations["note"])
		for _, d := range disks {
			require.Equal(t, tt.kept, d.ObjectMeta.Annotations[vm.KeptAnnotation] == "true", name)
		}
	}
	require.Equal(t, "root", s.DataVolumeTemplates[0].ObjectMeta.Name, "the pool is not changed")
	w.pool.Spec.Replicas = new(int32(2))
	o := w.observe()
	o.Disks = map[string]bool{"data-0": true, "root-2": true, "shared-1": true, "root-1": false}
	var made []string
	for _, a := range pool.Decide(o).Actions {
		if a, ok := a.(scheduler.CreateVM); ok {
			made = append(made, a.VM.Name)
		}
	}
	require.Equal(t, []string{"web-1", "web-3"}, made, "a name is in use as long as a disk is")
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
