package volume

import (
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

// Where volumes are in a launcher pod, for its mounts and for its attachments
// alike. root precedes the paths of processes outside the pod; it is empty in
// the pod.

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

// emptyDiskPath is the file of an empty disk.
func emptyDiskPath(root, volume string) string {
	return path.Join(ephemeralDir(root), "empty-disks", volume+".qcow2")
}

// filesImagePath is the file of an image of files.
func filesImagePath(root, volume string) string {
	return path.Join(ephemeralDir(root), "files", volume+".iso")
}

// filesDir is the folder with the files of a volume of the kind, from which its image
// is made.
func filesDir(root, kind, volume string) string {
	return path.Join(root, vmi.PrivateDir, kind, volume)
}

// noCloudPath is the file of the instance's NoCloud image.
func noCloudPath(root string, v *vmi.VirtualMachineInstance) string {
	return path.Join(root, vmi.CloudInitImage(v.Namespace, v.Name))
}

// configDrivePath is the file of the instance's ConfigDrive image.
func configDrivePath(root string, v *vmi.VirtualMachineInstance) string {
	return path.Join(root, vmi.ConfigDriveImage(v.Namespace, v.Name))
}

// secretsDir is the folder of the Secrets that the launcher reads.
const secretsDir = "/var/run/kubevirt/secrets"

// userSecretDir is the folder with the keys of the Secret with a volume's user
// data.
func userSecretDir(root, volume string) string {
	return path.Join(root, secretsDir, volume, "user")
}

// networkSecretDir is the folder with the keys of the Secret with a volume's
// network data.
func networkSecretDir(root, volume string) string {
	return path.Join(root, secretsDir, volume, "network")
}

// containerDisksDir is the folder of the container disks.
func containerDisksDir(root string) string { return path.Join(root, vmi.ContainerDisksDir) }

// containerDiskDir is the folder with the content of a container disk: all of its
// image, or the copy of its disk.
func containerDiskDir(root, volume string) string {
	return path.Join(containerDisksDir(root), volume)
}

// diskFile is the disk image in a claim with a file system.
const diskFile = "disk.img"

// claimDir is the mount of a claim with a file system.
func claimDir(root, volume string) string {
	return path.Join(root, vmi.PrivateDir, "vmi-disks", volume)
}

// claimFile is the disk image in a claim with a file system.
func claimFile(root, volume string) string { return path.Join(claimDir(root, volume), diskFile) }

// hostDiskPath is the disk image in the folder of the node that is mounted where the
// file system of a claim would be.
func hostDiskPath(root, volume string, d *vmi.HostDisk) string {
	return path.Join(claimDir(root, volume), path.Base(d.Path))
}

// ownDevices are what containers have in /dev without any claim.
var ownDevices = []string{"console", "core", "fd", "full", "kvm", "mqueue", "net", "null", "ptmx", "pts", "random", "shm", "stderr",
	"stdin", "stdout", "tty", "urandom", "vhost-net", "vhost-vsock", "zero"}

// devicePath is the device of a claim in block mode. The name of a volume has no dot.
func devicePath(root, volume string) string {
	if slices.Contains(ownDevices, volume) {
		volume = "volume." + volume
	}
	return path.Join(root, "/dev", volume)
}

// programDir is the folder of the launcher's program in containers that run a
// disk's image.
const programDir = "/var/run/kubevirt/bin"

// programPath is the launcher's program in programDir.
func programPath() string { return path.Join(programDir, "virt-launcher") }
