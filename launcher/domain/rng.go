package domain

import "libvirt.org/go/libvirtxml"

// rng adds the guest's source of random numbers, if the spec has one.
func rng(b *build) error {
	if b.spec.Devices.Rng == nil {
		return nil
	}
	b.domain.Devices.RNGs = []libvirtxml.DomainRNG{{
		Model:   nonTransitional,
		Backend: &libvirtxml.DomainRNGBackend{Random: &libvirtxml.DomainRNGBackendRandom{Device: "/dev/urandom"}},
	}}
	return nil
}
