package defaults

import (
	"crypto/sha1"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
)

// machineType decides the architecture and the machine type.
func machineType(s *vmi.VirtualMachineInstanceSpec, p Profile) {
	if s.Architecture == "" {
		s.Architecture = p.architecture()
	}
	if s.Domain.Machine == nil {
		s.Domain.Machine = &vmi.Machine{}
	}
	if s.Domain.Machine.Type == "" {
		s.Domain.Machine.Type = p.machineType(s.Architecture)
	}
}

// firmware gives the VMI an identity.
func firmware(d *vmi.DomainSpec, uuid types.UID, serial string) {
	if uuid == "" && serial == "" {
		return
	}
	if d.Firmware == nil {
		d.Firmware = &vmi.Firmware{}
	}
	if d.Firmware.UUID == "" {
		d.Firmware.UUID = uuid
	}
	if d.Firmware.Serial == "" {
		d.Firmware.Serial = serial
	}
}

// bootloader starts arm64 VMIs with UEFI, as nothing else can, and without
// secure boot, which there is none of.
func bootloader(s *vmi.VirtualMachineInstanceSpec) {
	if s.Architecture != ARM64 {
		return
	}
	if s.Domain.Firmware == nil {
		s.Domain.Firmware = &vmi.Firmware{}
	}
	f := s.Domain.Firmware
	if f.Bootloader == nil {
		f.Bootloader = &vmi.Bootloader{}
	}
	if f.Bootloader.EFI == nil && f.Bootloader.BIOS == nil {
		f.Bootloader.EFI = &vmi.EFI{}
	}
	if e := f.Bootloader.EFI; e != nil && e.SecureBoot == nil {
		e.SecureBoot = new(false)
	}
}

// space is the namespace of the UUIDs that follow from UIDs.
var space = [16]byte{0x8f, 0x2b, 0x6a, 0x0e, 0x5d, 0x33, 0x4c, 0x61, 0x9a, 0x4e, 0x17, 0xd0, 0x52, 0xc8, 0x7b, 0xf9}

// UUID is the one that the guest of the object with this UID sees: always the
// same for one UID and different for each (RFC 9562, version 5).
func UUID(uid types.UID) types.UID {
	u := sha1.Sum(append(space[:], uid...))
	u[6] = u[6]&0x0f | 0x50
	u[8] = u[8]&0x3f | 0x80
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:16]))
}
