package volume

import (
	"path"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

// Where volumes are in a launcher pod, for its mounts and for its attachments alike, is
// in the file of their kind; here is what several kinds use. root precedes the paths of
// processes outside the pod; it is empty in the pod.

// EphemeralDisks is the mount of the pod's own volume for the disks that are lost
// with the pod.
func EphemeralDisks() corev1.VolumeMount {
	return corev1.VolumeMount{Name: "ephemeral-disks", MountPath: ephemeralDir("")}
}

// ephemeralDir is the folder of the disks that are lost with the pod.
func ephemeralDir(root string) string { return path.Join(root, vmi.EphemeralDisksDir) }

// overlayPath is the file of a container disk's overlay.
func overlayPath(root, volume string) string {
	return path.Join(ephemeralDir(root), "disk-data", volume, "disk.qcow2")
}

// programDir is the folder of the launcher's program in containers that run a
// disk's image.
const programDir = "/var/run/kubevirt/bin"

// programPath is the launcher's program in programDir.
func programPath() string { return path.Join(programDir, "virt-launcher") }
