package domain

// transitionalModel is the model of a virtio device that has the legacy interface
// too.
const transitionalModel = "virtio-transitional"

// transitional gives the guest's virtio devices the legacy interface, if the spec
// asks for it: for guests without a driver for the modern one.
func transitional(b *Draft) error {
	if !isOn(b.Spec.Devices.UseVirtioTransitional, false) || b.Host.Arch == archS390X {
		return nil
	}
	for _, d := range b.virtio() {
		if d.Model != nil && *d.Model == nonTransitional {
			*d.Model = transitionalModel
		}
	}
	return nil
}
