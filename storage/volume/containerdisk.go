package volume

import (
	"errors"
	"path"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// ContainerDisks is a way in which disks in container images reach the pod.
type ContainerDisks string

const (
	// ImageVolume mounts the container image as a volume of the pod. It needs
	// Kubernetes 1.35 or newer, or the feature gate ImageVolume.
	ImageVolume ContainerDisks = "ImageVolume"
	// InitCopy copies the disk into the pod before the compute container starts. It
	// works everywhere and needs time and space for the copy.
	InitCopy ContainerDisks = "InitCopy"
)

// What all container disks use together if they are copied.
const (
	programVolume    = "launcher-bin"
	copiesVolume     = "container-disks"
	installContainer = "install"
)

// Copies are the names of the volumes that containers share which copy what is in images.
func Copies() []string { return []string{programVolume, copiesVolume, kernelCopies} }

// containerDisk is a disk image in a container image. The guest gets an overlay.
//
// +podvisor:entry
var containerDisk = Kind{
	Name:       "containerDisk",
	Migratable: true,
	Shared:     Names{Volumes: []string{programVolume, copiesVolume}, Containers: []string{installContainer}},
	Pod: func(v vmi.Volume, n PodNames, c Cluster) Part {
		part := mounted(v, n)
		if c.ContainerDisks == InitCopy {
			part = copied(v, n)
		}
		if s := v.ContainerDisk.ImagePullSecret; s != "" {
			part.PullSecrets = []corev1.LocalObjectReference{{Name: s}}
		}
		return part
	},
	Observe: func(v vmi.Volume, n Node) Observation {
		return Observation{Image: &ContainerImage{
			Reference: v.ContainerDisk.Image, Dir: containerDiskDir(n.Root, v.Name), File: v.ContainerDisk.Path,
		}}
	},
	Attach: func(_ *vmi.VirtualMachineInstance, v vmi.Volume, n Node) (storage.Attachment, error) {
		base, ok := n.Images[v.Name]
		if !ok {
			return storage.Attachment{}, errors.New("container disk not observed")
		}
		return storage.Attachment{
			Path:      overlayPath(n.Root, v.Name),
			Format:    storage.QCOW2,
			SizeBytes: roundUp(base.SizeBytes),
			Source:    storage.Overlay{Base: base},
		}, nil
	},
}

// mounted mounts the image at the container disk's folder.
func mounted(v vmi.Volume, n PodNames) Part {
	return Part{
		Volumes: []corev1.Volume{{Name: n.Volume, VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{
			Reference: v.ContainerDisk.Image, PullPolicy: v.ContainerDisk.ImagePullPolicy,
		}}}},
		Mounts: []corev1.VolumeMount{{Name: n.Volume, MountPath: containerDiskDir("", v.Name), ReadOnly: true}},
	}
}

// copied copies the disk to the container disk's folder. A disk's image has
// nothing to run, so the launcher's program is installed next to it first.
func copied(v vmi.Volume, n PodNames) Part {
	program, install := installed()
	copies := corev1.VolumeMount{Name: copiesVolume, MountPath: containerDisksDir("")}
	args := []string{"copy-disk"}
	if v.ContainerDisk.Path != "" {
		args = append(args, "--path", v.ContainerDisk.Path)
	}
	take := Init{
		Name:       n.Container,
		Image:      v.ContainerDisk.Image,
		PullPolicy: v.ContainerDisk.ImagePullPolicy,
		Program:    programPath(),
		Args:       append(args, "--to", containerDiskDir("", v.Name)),
		Mounts:     []corev1.VolumeMount{program, copies},
	}

	copies.ReadOnly = true
	return Part{
		Volumes: []corev1.Volume{emptyDir(programVolume), emptyDir(copiesVolume)},
		Mounts:  []corev1.VolumeMount{copies},
		Init:    []Init{install, take},
	}
}

// installed is the mount of the launcher's program in containers that run it from
// another image, and the container that puts it there.
func installed() (corev1.VolumeMount, Init) {
	program := corev1.VolumeMount{Name: programVolume, MountPath: programDir}
	install := Init{Name: installContainer, Args: []string{"install", programDir}, Mounts: []corev1.VolumeMount{program}}
	program.ReadOnly = true
	return program, install
}

func emptyDir(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
}

// containerDisksDir is the folder of the container disks.
func containerDisksDir(root string) string { return path.Join(root, vmi.ContainerDisksDir) }

// containerDiskDir is the folder with the content of a container disk: all of its
// image, or the copy of its disk.
func containerDiskDir(root, volume string) string {
	return path.Join(containerDisksDir(root), volume)
}
