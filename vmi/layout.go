package vmi

import "path"

// Where things are in a launcher pod. virt-controller renders the pod with
// these names, virt-launcher and virt-handler find them there.
const (
	// ComputeContainer is the first container of the pod: virt-launcher, libvirt
	// and QEMU.
	ComputeContainer = "compute"

	// SocketsVolume is the emptyDir with the launcher's sockets, mounted at
	// SocketsDir. virt-handler finds it in the kubelet's folder of the pod.
	SocketsVolume = "sockets"
	SocketsDir    = "/var/run/kubevirt/sockets"
	// LauncherSocket is the launcher's control socket in SocketsDir.
	LauncherSocket = "launcher-sock"

	// PrivateDir holds the files of libvirt and the guest's sockets.
	PrivateDir = "/var/run/kubevirt-private"
	// EphemeralDisksDir holds the disks that are lost when the VMI ends.
	EphemeralDisksDir = "/var/run/kubevirt-ephemeral-disks"
	// ContainerDisksDir holds one folder per container disk, named after its
	// volume: the root of the container image.
	ContainerDisksDir = "/var/run/kubevirt/container-disks"
	// FilesystemsVolume is the emptyDir with the sockets of the servers of file
	// systems, mounted at FilesystemsDir.
	FilesystemsVolume = "virtiofs-containers"
	FilesystemsDir    = "/var/run/kubevirt/virtiofs-containers"
	// KernelBootDir holds the folders kernel and initrd, in which the container image
	// of a VMI's kernel is found, or the copy of the one file.
	KernelBootDir = "/var/run/kubevirt/kernel-boot"
	// NVRAMDir holds the variables of the UEFI firmware, and TPMDir the state of the
	// TPM. What is persistent is in a claim that is mounted there.
	NVRAMDir = PrivateDir + "/nvram"
	TPMDir   = PrivateDir + "/swtpm"
)

// FilesystemSocket is the path in a launcher pod of the socket of the server of the file
// system of this name.
func FilesystemSocket(name string) string { return path.Join(FilesystemsDir, name+".sock") }
