package validate

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// launchSecurity checks how the guest is kept from its node. KubeVirt reports each fault
// without the domain in its path.
func launchSecurity(spec *field.Path, s *vmi.VirtualMachineInstanceSpec, lim Limits) field.ErrorList {
	security := s.Domain.LaunchSecurity
	if security == nil {
		return nil
	}
	at := spec.Child("domain", "launchSecurity")
	l := launchSecurityFaults(at, s, lim)
	for _, e := range l {
		_ = as(spec.Child("launchSecurity").String(), e)
	}
	if t := s.Domain.Devices.UseVirtioTransitional; t != nil && *t && lim.architecture(s.Architecture) != defaults.S390X {
		l = append(l, field.Invalid(spec.Child("domain", "devices", "useVirtioTransitional"), true,
			"the legacy interface of virtio reads memory that launchSecurity keeps from the node: leave one out"))
	}
	return l
}

func launchSecurityFaults(at *field.Path, s *vmi.VirtualMachineInstanceSpec, lim Limits) field.ErrorList {
	security := s.Domain.LaunchSecurity
	one := count(security.SEV != nil, security.SNP != nil, security.TDX != nil)
	switch arch := lim.architecture(s.Architecture); {
	case arch == defaults.S390X && one == 0:
		return nil
	case arch == defaults.S390X:
		return field.ErrorList{field.Invalid(at, field.OmitValueType{}, "sev, snp and tdx are for amd64 VMIs only: leave launchSecurity empty, {}, on s390x")}
	case arch != defaults.AMD64:
		return field.ErrorList{field.Invalid(at, field.OmitValueType{}, "is for amd64 and s390x VMIs only, this one is "+arch+": leave it out")}
	case one != 1:
		return field.ErrorList{field.Forbidden(at, "must have exactly one of sev, snp and tdx")}
	case security.TDX != nil && !lim.Features.TDX:
		return field.ErrorList{field.Invalid(at, "tdx", "is switched off in this cluster's configuration: it needs the feature gate WorkloadEncryptionTDX")}
	case security.TDX != nil:
		return append(trustDomain(at, s), encryptedFirmware(at, "tdx", s)...)
	case !lim.Features.SEV:
		return field.ErrorList{field.Invalid(at, "sev or snp", "is switched off in this cluster's configuration: it needs the feature gate WorkloadEncryptionSEV")}
	case security.SNP != nil:
		return append(encryptedBoot(at, "snp", s), encryptedFirmware(at, "snp", s)...)
	}
	l := append(encryptedBoot(at, "sev", s), encryptedFirmware(at, "sev", s)...)
	if security.SEV.Attestation != nil && (s.StartStrategy == nil || *s.StartStrategy != vmi.StartPaused) {
		l = append(l, field.Invalid(at.Child("sev", "attestation"), field.OmitValueType{}, "needs startStrategy: Paused"))
	}
	return l
}

// encryptedFirmware checks what the guest is started by, which has to know that the
// memory is encrypted.
func encryptedFirmware(at *field.Path, name string, s *vmi.VirtualMachineInstanceSpec) field.ErrorList {
	var l field.ErrorList
	e := s.Domain.UEFI()
	switch {
	case e == nil:
		l = append(l, field.Invalid(at, name, "needs UEFI: set firmware.bootloader.efi"))
	case e.Persists():
		l = append(l, field.Invalid(at, name, "excludes firmware.bootloader.efi.persistent: leave one out"))
	}
	for i := range s.Domain.Devices.Interfaces {
		if n := &s.Domain.Devices.Interfaces[i]; n.BootOrder != nil {
			l = append(l, field.Invalid(at, name, "excludes interfaces that the guest starts from: leave bootOrder of interface "+quote(n.Name)+" out"))
		}
	}
	return l
}

// encryptedBoot checks what AMD's processors cannot have.
func encryptedBoot(at *field.Path, name string, s *vmi.VirtualMachineInstanceSpec) field.ErrorList {
	if e := s.Domain.UEFI(); e != nil && enabled(e.SecureBoot) {
		return field.ErrorList{field.Invalid(at, name, "excludes secure boot: set firmware.bootloader.efi.secureBoot: false")}
	}
	return nil
}

// trustDomain checks what Intel's processors cannot have.
func trustDomain(at *field.Path, s *vmi.VirtualMachineInstanceSpec) field.ErrorList {
	if f := s.Domain.Features; f != nil && f.SMM != nil && smm(f) {
		return field.ErrorList{field.Invalid(at, "tdx", "excludes features.smm: leave one out")}
	}
	return nil
}
