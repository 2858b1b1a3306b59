package domain

import "libvirt.org/go/libvirtxml"

// TranslationCacheBytes is the memory that QEMU keeps translated code in when it
// emulates. QEMU's own default is 1 GiB, which no pod's overhead allows for.
const TranslationCacheBytes = 32 << 20

// features adds what the hypervisor offers.
func features(b *build) error {
	f := &libvirtxml.DomainFeatureList{
		ACPI:   &libvirtxml.DomainFeature{},
		VMPort: &libvirtxml.DomainFeatureState{State: "off"},
	}
	if !b.host.KVM {
		f.TCG = &libvirtxml.DomainFeatureTCG{TBCache: &libvirtxml.DomainFeatureTCGTBCache{Unit: "MiB", Size: TranslationCacheBytes >> 20}}
	}
	b.domain.Features = f
	return nil
}
