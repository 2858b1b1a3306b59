package volume

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

func TestAnImageIsMountedWhereItsDiskIsObserved(t *testing.T) {
	t.Parallel()
	v := instance(demoDisk, oneGi, noCloud)
	v.Spec.Volumes[0].Name = "private" // a name that the pod has already
	got, err := Pod(v.Spec.Volumes, Cluster{Reserved: own})
	require.NoError(t, err)
	require.Equal(t, Part{
		Volumes: []corev1.Volume{{Name: "volume-private", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "demo"}}}},
		Mounts:  []corev1.VolumeMount{{Name: "volume-private", MountPath: "/var/run/kubevirt/container-disks/private", ReadOnly: true}},
	}, got)
	observations, err := Observations(v.Spec.Volumes, Node{})
	require.NoError(t, err)
	require.Equal(t, got.Mounts[0].MountPath, observations[0].Image.Dir)
}

func TestADiskIsCopiedToWhereItIsObserved(t *testing.T) {
	t.Parallel()
	v := instance(demoDisk, vmi.VolumeSource{ContainerDisk: &vmi.ContainerDisk{Image: "other", ImagePullPolicy: "Never"}})
	got, err := Pod(v.Spec.Volumes, Cluster{ContainerDisks: InitCopy, Reserved: own})
	require.NoError(t, err)
	program := corev1.VolumeMount{Name: "launcher-bin", MountPath: "/var/run/kubevirt/bin"}
	programRO := program
	programRO.ReadOnly = true
	copies := corev1.VolumeMount{Name: "container-disks", MountPath: "/var/run/kubevirt/container-disks"}
	copiesRO := copies
	copiesRO.ReadOnly = true
	require.Equal(t, Part{
		Volumes: []corev1.Volume{emptyDir("launcher-bin"), emptyDir("container-disks")},
		Mounts:  []corev1.VolumeMount{copiesRO},
		Init: []Init{
			{Name: "install", Args: []string{"install", "/var/run/kubevirt/bin"}, Mounts: []corev1.VolumeMount{program}},
			{Name: "volumea", Image: "demo", Program: "/var/run/kubevirt/bin/virt-launcher",
				Args: []string{"copy-disk", "--path", "/images/demo.img", "--to", "/var/run/kubevirt/container-disks/a"}, Mounts: []corev1.VolumeMount{programRO, copies}},
			{Name: "volumeb", Image: "other", PullPolicy: corev1.PullNever, Program: "/var/run/kubevirt/bin/virt-launcher",
				Args: []string{"copy-disk", "--to", "/var/run/kubevirt/container-disks/b"}, Mounts: []corev1.VolumeMount{programRO, copies}},
		},
	}, got)
	observations, err := Observations(v.Spec.Volumes, Node{})
	require.NoError(t, err)
	for i, o := range observations {
		args := got.Init[i+1].Args
		require.Equal(t, args[len(args)-1], o.Image.Dir)
	}
}

func TestVolumesThatTheLauncherMakesNeedNothingOfThePod(t *testing.T) {
	t.Parallel()
	got, err := Pod(instance(noCloud, oneGi).Spec.Volumes, Cluster{ContainerDisks: InitCopy})
	require.NoError(t, err)
	require.Equal(t, Part{}, got)
}
