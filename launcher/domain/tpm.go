package domain

import "libvirt.org/go/libvirtxml"

// tpmPart is the trusted platform module.
//
// +podvisor:entry
var tpmPart = Part{Name: "tpm", Build: tpm}

// tpm adds the emulated trusted platform module. Its models are KubeVirt's: one that
// keeps its state has the newer interface, CRB. libvirt removes the state of the other
// with the domain. Guests of arm64 have no CRB.
func tpm(b *Draft) error {
	t := b.Spec.Devices.TPM
	if !t.On() {
		return nil
	}
	emulator := &libvirtxml.DomainTPMBackendEmulator{Version: "2.0"}
	model := "tpm-tis"
	if t.Persists() {
		model, emulator.PersistentState = "tpm-crb", "yes"
	}
	if b.Host.Arch == archARM {
		model = "tpm-tis"
	}
	b.Domain.Devices.TPMs = []libvirtxml.DomainTPM{{Model: model, Backend: &libvirtxml.DomainTPMBackend{Emulator: emulator}}}
	return nil
}
