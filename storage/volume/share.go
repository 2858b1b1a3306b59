package volume

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

// filesystemPrefix begins the names of containers that serve file systems.
const filesystemPrefix = "virtiofs-"

// shareDir is the mount of a volume in the container that serves it.
const shareDir = "/share"

// Share is a container that serves a volume to the guest as a file system.
type Share struct {
	// Name is the name of the container.
	Name string
	// Socket is the path of the socket that QEMU connects to.
	Socket string
	// ReadOnly says that the guest may not write.
	ReadOnly bool
	// Mounts are the volume, which is what is served, and the folder of the socket.
	Mounts []corev1.VolumeMount
}

// share adds the container that serves a volume to its part of the pod. The compute
// container has the volume only if it is a disk too.
func (k Kind) share(v vmi.Volume, n PodNames, p Part, disk bool) (Part, error) {
	if !slices.Contains(vmi.FilesystemKinds(), k.Name) {
		return Part{}, fmt.Errorf("volume %s: kind %s cannot be a file system: show it by a disk: %w", v.Name, k.Name, vmi.ErrInvalid)
	}
	if len(p.Mounts) != 1 {
		return Part{}, fmt.Errorf("volume %s: its claim is in block mode and cannot be a file system: show it by a disk, or name a claim with volumeMode Filesystem: %w",
			v.Name, vmi.ErrInvalid)
	}
	sockets := corev1.VolumeMount{Name: vmi.FilesystemsVolume, MountPath: vmi.FilesystemsDir}
	mount := p.Mounts[0]
	mount.MountPath = shareDir
	p.Shares = []Share{{
		Name: n.Filesystem, Socket: vmi.FilesystemSocket(v.Name), ReadOnly: mount.ReadOnly,
		Mounts: []corev1.VolumeMount{mount, sockets},
	}}
	if !disk {
		p.Mounts = nil
	}
	p.Mounts = append(slices.Clone(p.Mounts), sockets)
	p.Volumes = append(slices.Clone(p.Volumes), corev1.Volume{Name: vmi.FilesystemsVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	return p, nil
}
