package domain

import (
	"path"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

// Host is what a pod offers to the domain in it.
type Host struct {
	// Arch is the architecture of guests in libvirt's words. Default: that of the VMI,
	// or else x86_64.
	Arch string
	// KVM says that the pod has a /dev/kvm that works.
	KVM bool
	// AllowEmulation lets the guest run without KVM, which is much slower.
	AllowEmulation bool
	// PrivateDir is the folder of the VMI's own sockets. Default: the function
	// [PrivateDir].
	PrivateDir string
	// Root is the folder that the variables of the firmware are below. Default: /.
	Root string
	// ConsoleLog is the file to which QEMU appends what the guest writes to its
	// serial console. Empty: none.
	ConsoleLog string
	// Disks are the attachments of the VMI's disks, by their name.
	Disks map[string]Disk
	// Kernel are the files that firmware.kernelBoot names.
	Kernel KernelFiles
	// Interfaces are the VMI's interfaces as they are bound in the pod.
	Interfaces []network.Attachment
	// Places are the places of devices that are known from before, by the alias of
	// the device. Nil: the order of the spec decides.
	Places map[string]Place
	// HostDevices are the devices of the node that the pod was given, as its
	// environment names them: the variables that begin with [PCIVariable],
	// [MDEVVariable] or [NetworkVariable], and their values. Those that begin with
	// vmi.NetworkResourceVariable say which resource is whose.
	HostDevices map[string]string
	// CPUs are those of the node that the pod may use. Needed for dedicated CPUs.
	CPUs []HostCPU
	// MemoryNodes are the numbers of the NUMA nodes that the pod's memory may be of.
	// Nil: not known.
	MemoryNodes []int
	// BindMemory says that the pod may choose of which NUMA node memory is. Most
	// seccomp profiles forbid that.
	BindMemory bool
	// Parts are the kinds of devices that the domain is built of. Nil: [Parts].
	Parts []Part
	// Settings are the cluster's. The zero value is the default.
	Settings config.Launcher
}

// Disk is an attachment with the facts of where it is.
type Disk struct {
	storage.Attachment
	// Device says that the attachment is a block device, not a file.
	Device bool
	// DirectIO says that the attachment, and what it is an overlay of, can be
	// opened past the page cache.
	DirectIO bool
	// Blocks are the blocks of what the attachment is in.
	Blocks storage.Blocks
	// Preallocated says that the volume has taken all space of the disk beforehand.
	Preallocated bool
}

// Sockets of a VMI in its private folder.
const (
	serialSocket = "virt-serial0"
	vncSocket    = "virt-vnc"
	agentSocket  = "virt-agent"
)

// PrivateDir is the folder of v's own sockets in its pod.
func PrivateDir(v *vmi.VirtualMachineInstance) string {
	return path.Join(vmi.PrivateDir, string(v.UID))
}

// SerialSocket is the socket of the serial console of the VMI whose private folder
// is dir.
func SerialSocket(dir string) string { return path.Join(dir, serialSocket) }

// VNCSocket is the socket of the screen of the VMI whose private folder is dir.
func VNCSocket(dir string) string { return path.Join(dir, vncSocket) }
