package domain

import (
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// rngs is the guest's source of random numbers, if it has one.
func rngs(r *vmi.Rng) []libvirtxml.DomainRNG {
	if r == nil {
		return nil
	}
	return []libvirtxml.DomainRNG{{
		Model:   nonTransitional,
		Backend: &libvirtxml.DomainRNGBackend{Random: &libvirtxml.DomainRNGBackendRandom{Device: "/dev/urandom"}},
	}}
}
