package volume

import (
	"path"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

// Role is what a file is that a guest is started with.
type Role string

// The roles. The value is the name of the folder of the file in the pod.
const (
	Kernel Role = "kernel"
	Initrd Role = "initrd"
)

// BootFile is a file in the container image that a guest is started with.
type BootFile struct {
	Role Role
	ContainerImage
}

// The names that belong to the image of a kernel in a pod. KubeVirt has the first.
const (
	kernelVolume = "kernel-boot-volume"
	kernelCopies = "kernel-boot"
	kernelInit   = "kernel-boot-"
)

// KernelFiles are the files of c in the pod whose root is the folder root. A nil c has
// none.
func KernelFiles(c *vmi.KernelBootContainer, root string) []BootFile {
	if c == nil {
		return nil
	}
	var out []BootFile
	for _, f := range []struct {
		role Role
		path string
	}{{Kernel, c.KernelPath}, {Initrd, c.InitrdPath}} {
		if f.path != "" {
			out = append(out, BootFile{f.role, ContainerImage{Reference: c.Image, Dir: path.Join(root, vmi.KernelBootDir, string(f.role)), File: f.path}})
		}
	}
	return out
}

// KernelNames are the names that [KernelBoot] gives to what it adds to a pod.
func KernelNames(c *vmi.KernelBootContainer) Names {
	if c == nil {
		return Names{}
	}
	return Names{
		Volumes:    []string{kernelVolume, kernelCopies, programVolume},
		Containers: []string{kernelInit + string(Kernel), kernelInit + string(Initrd), installContainer},
	}
}

// KernelBoot returns what a pod needs for the files of c: the image as a volume, or
// copies of the files.
func KernelBoot(c *vmi.KernelBootContainer, way ContainerDisks) Part {
	files := KernelFiles(c, "")
	if len(files) == 0 {
		return Part{}
	}
	part := mountedKernel(c, files)
	if way == InitCopy {
		part = copiedKernel(c, files)
	}
	if s := c.ImagePullSecret; s != "" {
		part.PullSecrets = []corev1.LocalObjectReference{{Name: s}}
	}
	return part
}

func mountedKernel(c *vmi.KernelBootContainer, files []BootFile) Part {
	p := Part{Volumes: []corev1.Volume{{Name: kernelVolume, VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{
		Reference: c.Image, PullPolicy: c.ImagePullPolicy,
	}}}}}
	for _, f := range files {
		p.Mounts = append(p.Mounts, corev1.VolumeMount{Name: kernelVolume, MountPath: f.Dir, ReadOnly: true})
	}
	return p
}

func copiedKernel(c *vmi.KernelBootContainer, files []BootFile) Part {
	program, install := installed()
	copies := corev1.VolumeMount{Name: kernelCopies, MountPath: vmi.KernelBootDir}
	p := Part{Volumes: []corev1.Volume{emptyDir(programVolume), emptyDir(kernelCopies)}, Init: []Init{install}}
	for _, f := range files {
		p.Init = append(p.Init, Init{
			Name:       kernelInit + string(f.Role),
			Image:      c.Image,
			PullPolicy: c.ImagePullPolicy,
			Program:    programPath(),
			Args:       []string{"copy-disk", "--path", f.File, "--to", f.Dir},
			Mounts:     []corev1.VolumeMount{program, copies},
		})
	}
	copies.ReadOnly = true
	p.Mounts = []corev1.VolumeMount{copies}
	return p
}
