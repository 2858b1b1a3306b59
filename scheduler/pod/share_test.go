package pod_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func shared(name string, source vmi.VolumeSource) vmitest.Option {
	return with(func(v *vmi.VirtualMachineInstance) {
		v.Spec.Volumes = append(v.Spec.Volumes, vmi.Volume{Name: name, VolumeSource: source})
		v.Spec.Domain.Devices.Filesystems = append(v.Spec.Domain.Devices.Filesystems, vmi.Filesystem{Name: name, Virtiofs: &vmi.FilesystemVirtiofs{}})
	})
}

func inClaim(name string) vmi.VolumeSource {
	return vmi.VolumeSource{PersistentVolumeClaim: &vmi.PersistentVolumeClaimVolume{PersistentVolumeClaimVolumeSource: corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}
}

func TestASharedVolumeIsServedByAContainerOfItsOwn(t *testing.T) {
	t.Parallel()
	v := vmitest.New(shared("data", inClaim("claim")),
		shared("conf", vmi.VolumeSource{ConfigMap: &vmi.ConfigMapVolume{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}))
	p, err := pod.Render(v, pod.Config{Launcher: pod.Launcher{Image: "launcher"}})
	require.NoError(t, err)
	require.Len(t, p.Spec.InitContainers, 2)
	sockets := corev1.VolumeMount{Name: "virtiofs-containers", MountPath: "/var/run/kubevirt/virtiofs-containers"}
	for i, want := range []struct {
		name    string
		command []string
		mount   corev1.VolumeMount
	}{
		{"virtiofs-data", []string{"/usr/bin/virt-launcher", "share", "--socket", "/var/run/kubevirt/virtiofs-containers/data.sock", "--folder", "/share"},
			corev1.VolumeMount{Name: "data", MountPath: "/share"}},
		{"virtiofs-conf", []string{"/usr/bin/virt-launcher", "share", "--socket", "/var/run/kubevirt/virtiofs-containers/conf.sock", "--folder", "/share", "--read-only"},
			corev1.VolumeMount{Name: "conf", MountPath: "/share", ReadOnly: true}},
	} {
		c := p.Spec.InitContainers[i]
		require.Equal(t, want.name, c.Name)
		require.Equal(t, want.command, c.Command)
		require.Equal(t, []corev1.VolumeMount{want.mount, sockets}, c.VolumeMounts, "no other volume")
		require.Equal(t, new(corev1.ContainerRestartPolicyAlways), c.RestartPolicy)
		require.Equal(t, &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}, c.SecurityContext.Capabilities)
		require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
		require.Empty(t, c.Resources.Limits)
	}
	compute := p.Spec.Containers[0]
	require.Contains(t, compute.VolumeMounts, sockets)
	for _, m := range compute.VolumeMounts {
		require.NotContains(t, []string{"data", "conf"}, m.Name, "compute has a volume only if it is a disk")
	}
}

func TestTheServerOfAFileSystemIsLimitedAsItsVMIIs(t *testing.T) {
	t.Parallel()
	limited := with(func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
		v.Spec.Domain.Memory = &vmi.Memory{Guest: new(resource.MustParse("512Mi"))}
	})
	p, err := pod.Render(vmitest.New(limited, shared("data", inClaim("claim"))), pod.Config{Launcher: pod.Launcher{Image: "launcher"}})
	require.NoError(t, err)
	memory := p.Spec.InitContainers[0].Resources.Limits[corev1.ResourceMemory]
	require.Equal(t, "552Mi", memory.String())
}

func TestAClaimInBlockModeIsNoFileSystem(t *testing.T) {
	t.Parallel()
	facts := pod.Facts{Claims: map[string]*corev1.PersistentVolumeClaim{"claim": {Spec: corev1.PersistentVolumeClaimSpec{VolumeMode: new(corev1.PersistentVolumeBlock)}}}}
	_, err := pod.Render(vmitest.New(shared("data", inClaim("claim"))), pod.Config{Launcher: pod.Launcher{Image: "launcher"}, Facts: facts})
	require.ErrorIs(t, err, vmi.ErrInvalid)
	require.ErrorContains(t, err, "volume data: its claim is in block mode and cannot be a file system")
}
