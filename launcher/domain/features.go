package domain

import "libvirt.org/go/libvirtxml"

// TranslationCacheBytes is the memory that QEMU keeps translated code in when it
// emulates. QEMU's own default is 1 GiB, which no pod's overhead allows for.
const TranslationCacheBytes = 32 << 20

func features(h Host) *libvirtxml.DomainFeatureList {
	f := &libvirtxml.DomainFeatureList{
		ACPI:   &libvirtxml.DomainFeature{},
		VMPort: &libvirtxml.DomainFeatureState{State: "off"},
	}
	if !h.KVM {
		f.TCG = &libvirtxml.DomainFeatureTCG{TBCache: &libvirtxml.DomainFeatureTCGTBCache{Unit: "MiB", Size: TranslationCacheBytes >> 20}}
	}
	return f
}
