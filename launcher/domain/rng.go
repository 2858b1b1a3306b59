package domain

import "libvirt.org/go/libvirtxml"

// rng adds the guest's source of random numbers, if the spec has one.
func rng(b *Draft) error {
	if b.Spec.Devices.Rng == nil {
		return nil
	}
	b.Domain.Devices.RNGs = []libvirtxml.DomainRNG{{
		Model:   nonTransitional,
		Backend: &libvirtxml.DomainRNGBackend{Random: &libvirtxml.DomainRNGBackendRandom{Device: "/dev/urandom"}},
	}}
	return nil
}
