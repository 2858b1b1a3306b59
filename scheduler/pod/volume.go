package pod

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/internal/storage/credential"
	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
)

// ownMounts are the mounts of the compute container whose volumes are the pod's
// own. The root file system is read-only: everything that the launcher writes is
// in one of them.
func ownMounts() []corev1.VolumeMount {
	return []corev1.VolumeMount{
		{Name: vmi.SocketsVolume, MountPath: vmi.SocketsDir},
		{Name: "private", MountPath: vmi.PrivateDir},
		volume.EphemeralDisks(),
		{Name: "tmp", MountPath: "/tmp"},
	}
}

// volumes returns what the pod needs for its own volumes and for v's.
func volumes(v *vmi.VirtualMachineInstance, c Config) (volume.Part, error) {
	own := volume.Part{Mounts: ownMounts()}
	reserved := volume.Names{Containers: []string{vmi.ComputeContainer}}
	for _, m := range own.Mounts {
		own.Volumes = append(own.Volumes, corev1.Volume{Name: m.Name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		reserved.Volumes = append(reserved.Volumes, m.Name)
	}
	boot := v.Spec.Domain.BootContainer()
	other := volume.KernelNames(boot)
	reserved.Volumes = append(append(reserved.Volumes, volume.StateVolume, vmi.FilesystemsVolume), other.Volumes...)
	reserved.Containers = append(reserved.Containers, other.Containers...)
	credentials := credential.Part(v)
	for _, c := range credentials.Volumes {
		reserved.Volumes = append(reserved.Volumes, c.Name)
	}
	its, err := volume.Pod(v.Spec.Volumes, volume.Cluster{ContainerDisks: c.ContainerDisks, Claims: c.Facts.Claims,
		Filesystems: filesystems(&v.Spec.Domain.Devices), Reserved: reserved, Kinds: c.VolumeKinds})
	if err != nil {
		return volume.Part{}, err
	}
	its.Add(volume.KernelBoot(boot, c.ContainerDisks))
	its.Add(volume.State(&v.Spec.Domain, c.stateClaim(v)))
	its.Volumes = slices.Concat(own.Volumes, its.Volumes, credentials.Volumes)
	its.Mounts = slices.Concat(own.Mounts, its.Mounts, credentials.Mounts)
	c.move().pin(&its)
	return its, nil
}

// initContainers are the containers that run before the compute container.
func initContainers(all []volume.Init, c Config, dedicated bool) []corev1.Container {
	var out []corev1.Container
	for _, i := range all {
		image, pull := i.Image, i.PullPolicy
		if image == "" {
			image, pull = c.Image, c.pullPolicy()
		}
		out = append(out, corev1.Container{
			Name:                     i.Name,
			Image:                    image,
			ImagePullPolicy:          pull,
			Command:                  append([]string{cmp.Or(i.Program, launcherPath)}, i.Args...),
			SecurityContext:          containerSecurity(),
			VolumeMounts:             i.Mounts,
			Resources:                initResources(dedicated),
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		})
	}
	return out
}

// initResources are what a container asks for that runs before the compute container.
// In a pod with CPUs for itself each has limits, and so many that it is not slow: they
// are free at that time.
func initResources(dedicated bool) corev1.ResourceRequirements {
	if dedicated {
		all := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("64Mi")}
		return corev1.ResourceRequirements{Requests: all, Limits: all.DeepCopy()}
	}
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("10m"),
		corev1.ResourceMemory: resource.MustParse("32Mi"),
	}}
}
