package pod_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestNamesOfTheVolumesNeverCollideInThePod(t *testing.T) {
	t.Parallel()
	names := []string{"private", "sockets", "ephemeral-disks", "tmp", "container-disks", "launcher-bin", "compute", "install", "root"}
	for _, n := range names {
		names = append(names, "volume"+n, "volume-"+n)
	}
	names = append(names, strings.Repeat("v", 57), strings.Repeat("v", 63), strings.Repeat("v", 62)+"w")
	for _, way := range []pod.ContainerDisks{pod.ImageVolume, pod.InitCopy} {
		c := config
		c.ContainerDisks = way
		var options []vmitest.Option
		for _, n := range names {
			options = append(options, vmitest.WithContainerDisk(n, "example/"+n+":1"))
		}
		p, err := pod.Render(vmitest.New(options...), c)
		require.NoError(t, err)
		volumes, containers, paths := map[string]bool{}, map[string]bool{}, map[string]bool{}
		for _, v := range p.Spec.Volumes {
			require.False(t, volumes[v.Name], v.Name)
			require.Empty(t, validation.IsDNS1123Label(v.Name))
			volumes[v.Name] = true
		}
		for _, i := range append(p.Spec.InitContainers, p.Spec.Containers...) {
			require.False(t, containers[i.Name], i.Name)
			require.Empty(t, validation.IsDNS1123Label(i.Name))
			containers[i.Name] = true
		}
		for _, m := range p.Spec.Containers[0].VolumeMounts {
			require.True(t, volumes[m.Name], m.Name)
			require.False(t, paths[m.MountPath], m.MountPath)
			paths[m.MountPath] = true
		}
	}
}

func TestADiskOnTheNodeIsRefusedUnlessTheClusterAllowsIt(t *testing.T) {
	t.Parallel()
	v := vmitest.New(vmitest.WithDisk("data", vmi.VolumeSource{
		HostDisk: &vmi.HostDisk{Path: "/data/disks/a.img", Type: vmi.HostDiskExistsOrCreate, Capacity: new(resource.MustParse("1Gi"))},
	}))
	_, err := pod.Render(v, config)
	require.ErrorIs(t, err, vmi.ErrInvalid)
	require.ErrorContains(t, err, "disks in files of the node are switched off in this cluster's configuration: use a persistentVolumeClaim")

	allowed := config
	allowed.Cluster.Limits.Features.HostDisk = true
	p, err := pod.Render(v, allowed)
	require.NoError(t, err)
	require.Contains(t, p.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: "/data/disks", Type: new(corev1.HostPathDirectory)},
	}})
	require.Contains(t, p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "data", MountPath: "/var/run/kubevirt-private/vmi-disks/data"})
}

func TestEveryPullSecretIsNamedOnce(t *testing.T) {
	t.Parallel()
	p, err := pod.Render(vmitest.New(
		vmitest.WithDisk("a", vmi.VolumeSource{ContainerDisk: &vmi.ContainerDisk{Image: "a", ImagePullSecret: "one"}}),
		vmitest.WithDisk("b", vmi.VolumeSource{ContainerDisk: &vmi.ContainerDisk{Image: "b", ImagePullSecret: "two"}}),
		vmitest.WithDisk("c", vmi.VolumeSource{ContainerDisk: &vmi.ContainerDisk{Image: "c", ImagePullSecret: "one"}}),
		vmitest.WithContainerDisk("d", "d")), config)
	require.NoError(t, err)
	require.Equal(t, []corev1.LocalObjectReference{{Name: "one"}, {Name: "two"}}, p.Spec.ImagePullSecrets)
}
