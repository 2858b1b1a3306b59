package pod

import (
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/vmi"
)

// Volumes of the pod that are not a disk's, and where the compute container
// finds them. The root file system is read-only, so everything that the launcher
// writes is in one of them.
const (
	privateVolume   = "private"
	ephemeralVolume = "ephemeral-disks"
	tmpVolume       = "tmp"
	// copiesVolume and binVolume exist if disks are copied.
	copiesVolume = "container-disks"
	binVolume    = "launcher-bin"
)

// binDir is where the launcher's program is for the containers that run a disk's
// image, which has none.
const binDir = "/var/run/kubevirt/bin"

var emptyDirPaths = []corev1.VolumeMount{
	{Name: vmi.SocketsVolume, MountPath: vmi.SocketsDir},
	{Name: privateVolume, MountPath: vmi.PrivateDir},
	{Name: ephemeralVolume, MountPath: vmi.EphemeralDisksDir},
	{Name: tmpVolume, MountPath: "/tmp"},
}

func emptyDirMounts() []corev1.VolumeMount {
	return append([]corev1.VolumeMount(nil), emptyDirPaths...)
}

func emptyDirs() []corev1.Volume {
	var out []corev1.Volume
	for _, m := range emptyDirPaths {
		out = append(out, emptyDir(m.Name))
	}
	return out
}

func emptyDir(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
}

// disks are the parts of a pod that bring container disks to the machine.
type disks struct {
	init    []corev1.Container
	volumes []corev1.Volume
	mounts  []corev1.VolumeMount
}

func containerDisks(v *vmi.VirtualMachineInstance, c Config) disks {
	var vols []vmi.Volume
	for _, vol := range v.Spec.Volumes {
		if vol.ContainerDisk != nil {
			vols = append(vols, vol)
		}
	}
	switch {
	case len(vols) == 0:
		return disks{}
	case c.ContainerDisks == InitCopy:
		return copied(vols, c)
	}
	return mounted(vols)
}

// mounted mounts the root of each image at the folder named after its volume.
func mounted(vols []vmi.Volume) disks {
	var d disks
	for _, vol := range vols {
		name := volumeName(vol.Name)
		d.volumes = append(d.volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			Image: &corev1.ImageVolumeSource{Reference: vol.ContainerDisk.Image, PullPolicy: corev1.PullPolicy(vol.ContainerDisk.ImagePullPolicy)},
		}})
		d.mounts = append(d.mounts, corev1.VolumeMount{Name: name, MountPath: path.Join(vmi.ContainerDisksDir, vol.Name), ReadOnly: true})
	}
	return d
}

// copied copies each disk to the folder named after its volume. The images of
// disks have nothing to run, so the launcher's own program is put beside them
// first.
func copied(vols []vmi.Volume, c Config) disks {
	bin := corev1.VolumeMount{Name: binVolume, MountPath: binDir}
	copies := corev1.VolumeMount{Name: copiesVolume, MountPath: vmi.ContainerDisksDir}
	d := disks{
		volumes: []corev1.Volume{emptyDir(binVolume), emptyDir(copiesVolume)},
		init: []corev1.Container{initContainer("install", c.Image, c.pullPolicy(),
			[]string{launcherPath, "install", binDir}, bin)},
	}
	bin.ReadOnly = true
	for _, vol := range vols {
		cmd := []string{path.Join(binDir, "virt-launcher"), "copy-disk"}
		if vol.ContainerDisk.Path != "" {
			cmd = append(cmd, "--path", vol.ContainerDisk.Path)
		}
		cmd = append(cmd, "--to", path.Join(vmi.ContainerDisksDir, vol.Name))
		d.init = append(d.init, initContainer(initName(vol.Name), vol.ContainerDisk.Image, corev1.PullPolicy(vol.ContainerDisk.ImagePullPolicy), cmd, bin, copies))
	}
	copies.ReadOnly = true
	d.mounts = []corev1.VolumeMount{copies}
	return d
}

func initContainer(name, image string, pull corev1.PullPolicy, command []string, mounts ...corev1.VolumeMount) corev1.Container {
	return corev1.Container{
		Name: name, Image: image, ImagePullPolicy: pull, Command: command,
		SecurityContext: containerSecurity(), VolumeMounts: mounts,
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("10m"),
			corev1.ResourceMemory: resource.MustParse("32Mi"),
		}},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

// volumeName is the name of the pod's volume for a machine's: the same, unless
// the pod needs it for itself.
func volumeName(name string) string {
	switch name {
	case vmi.SocketsVolume, privateVolume, ephemeralVolume, tmpVolume:
		return "volume-" + name
	}
	return name
}

// initName is the name of the container that copies a volume's disk. Names of
// volumes and of containers may be equally long, hence the short prefix and the
// hash where it does not fit.
func initName(volume string) string {
	const prefix = "volume"
	if len(prefix)+len(volume) <= maxLabel {
		return prefix + volume
	}
	return prefix + volume[:maxLabel-len(prefix)-9] + "-" + digest(volume, 8)
}

// pullSecrets are the secrets with which the images of disks are pulled, each
// once.
func pullSecrets(v *vmi.VirtualMachineInstance) []corev1.LocalObjectReference {
	var out []corev1.LocalObjectReference
	seen := map[string]bool{"": true}
	for _, vol := range v.Spec.Volumes {
		if c := vol.ContainerDisk; c != nil && !seen[c.ImagePullSecret] {
			seen[c.ImagePullSecret] = true
			out = append(out, corev1.LocalObjectReference{Name: c.ImagePullSecret})
		}
	}
	return out
}
