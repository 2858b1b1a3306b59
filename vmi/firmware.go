package vmi

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Firmware is what runs before the guest's operating system, and the identity
// that it shows the guest.
type Firmware struct {
	// UUID is the system's UUID in the SMBIOS tables, by which an operating system
	// or its licence recognises the computer. Default: one that follows from the
	// UID of the VirtualMachineInstance, or of its VirtualMachine.
	// +optional
	UUID types.UID `json:"uuid,omitempty"`

	// Serial is the system's serial number in the SMBIOS tables. Default: none for
	// a VirtualMachineInstance, a random one that stays for a VirtualMachine.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_.+-]+$`
	Serial string `json:"serial,omitempty"`

	// Bootloader chooses between BIOS and UEFI. Default: BIOS on amd64, UEFI on
	// arm64.
	// +optional
	Bootloader *Bootloader `json:"bootloader,omitempty"`

	// KernelBoot starts a kernel from a container image instead of a boot loader
	// from a disk.
	// +optional
	KernelBoot *KernelBoot `json:"kernelBoot,omitempty"`
}

// Bootloader is the firmware that starts the guest: at most one field is set.
//
// +podvisor:atMostOne:of=bios;efi,message="a boot loader is one of"
type Bootloader struct {
	// BIOS starts the guest with SeaBIOS.
	// +optional
	BIOS *BIOS `json:"bios,omitempty"`

	// EFI starts the guest with UEFI firmware (OVMF or AAVMF).
	// +optional
	EFI *EFI `json:"efi,omitempty"`
}

// BIOS is the classic firmware.
type BIOS struct {
	// UseSerial prints the messages of the BIOS on the serial console. Default:
	// false.
	// +optional
	UseSerial *bool `json:"useSerial,omitempty"`
}

// EFI is the UEFI firmware.
type EFI struct {
	// SecureBoot starts only what is signed with a key that the firmware trusts.
	// It needs features.smm, except on arm64. Default: true; false on arm64.
	// +optional
	SecureBoot *bool `json:"secureBoot,omitempty"`

	// Persistent keeps the firmware's variables (boot entries, keys) on a volume
	// of their own, so that they outlast the VMI. Default: false.
	// +optional
	Persistent *bool `json:"persistent,omitempty"`
}

// KernelBoot starts a kernel from a container image.
//
// +kubebuilder:validation:XValidation:rule="!has(self.kernelArgs) || self.kernelArgs.size() == 0 || has(self.container)",message="kernelArgs needs a kernel to give them to: set container, or leave kernelArgs out",fieldPath=".kernelArgs"
type KernelBoot struct {
	// KernelArgs is the kernel's command line. It needs a kernel in container.
	// +optional
	KernelArgs string `json:"kernelArgs,omitempty"`

	// Container is the image with the kernel and its first root file system.
	// +optional
	Container *KernelBootContainer `json:"container,omitempty"`
}

// KernelBootContainer is a container image with a kernel.
type KernelBootContainer struct {
	// Image is the reference of the container image.
	// +kubebuilder:validation:MinLength=1
	Image string `json:"image"`

	// ImagePullSecret is the name of the Secret with which the image is pulled.
	// +optional
	ImagePullSecret string `json:"imagePullSecret,omitempty"`

	// ImagePullPolicy says when the image is pulled: Always, IfNotPresent or
	// Never. Default: Always if the image has the tag latest or none, otherwise
	// IfNotPresent.
	// +optional
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// KernelPath is the absolute path of the kernel in the image. One of
	// kernelPath and initrdPath must be set.
	// +optional
	KernelPath string `json:"kernelPath,omitempty"`

	// InitrdPath is the absolute path of the first root file system in the
	// image.
	// +optional
	InitrdPath string `json:"initrdPath,omitempty"`
}

// KernelBootStatus identifies what the guest was started with by
// firmware.kernelBoot.
type KernelBootStatus struct {
	// KernelInfo is the kernel.
	// +optional
	KernelInfo *BootFileInfo `json:"kernelInfo,omitempty"`
	// InitrdInfo is the first root file system.
	// +optional
	InitrdInfo *BootFileInfo `json:"initrdInfo,omitempty"`
}

// BootFileInfo identifies the content of a file.
type BootFileInfo struct {
	// Checksum is the CRC-32 of the file.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	// +kubebuilder:validation:Type=integer
	// +kubebuilder:validation:Format=int64
	Checksum uint32 `json:"checksum,omitempty"`
}

// UEFI returns the settings of the UEFI firmware that starts the guest. Nil: another
// firmware does.
func (d *DomainSpec) UEFI() *EFI {
	if d.Firmware == nil || d.Firmware.Bootloader == nil {
		return nil
	}
	return d.Firmware.Bootloader.EFI
}

// BootContainer returns the container image that the guest's kernel is in. Nil: a
// disk has the kernel.
func (d *DomainSpec) BootContainer() *KernelBootContainer {
	if d.Firmware == nil || d.Firmware.KernelBoot == nil {
		return nil
	}
	return d.Firmware.KernelBoot.Container
}

// Persists says whether the firmware's variables outlast the VMI.
func (e *EFI) Persists() bool { return e != nil && e.Persistent != nil && *e.Persistent }

// On says whether the VMI has the module.
func (t *TPM) On() bool { return t != nil && (t.Enabled == nil || *t.Enabled) }

// Persists says whether the module keeps what it stores when the VMI ends.
func (t *TPM) Persists() bool { return t.On() && t.Persistent != nil && *t.Persistent }

// KeepsState says whether something of the VMI beside its disks outlasts it, for which
// it has a claim.
func (d *DomainSpec) KeepsState() bool { return len(d.StateDirs()) > 0 }

// StateDirs are the folders in the pod of what outlasts the VMI beside its disks.
func (d *DomainSpec) StateDirs() []string {
	var all []string
	for _, t := range Traits() {
		if t.StateDir != nil && t.StateDir(d) != "" {
			all = append(all, t.StateDir(d))
		}
	}
	return all
}
