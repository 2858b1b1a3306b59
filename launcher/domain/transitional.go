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
	change := func(model *string) {
		if *model == nonTransitional {
			*model = transitionalModel
		}
	}
	l := b.Domain.Devices
	for i := range l.Disks {
		change(&l.Disks[i].Model)
	}
	for i := range l.Interfaces {
		if m := l.Interfaces[i].Model; m != nil {
			change(&m.Type)
		}
	}
	for i := range l.Controllers {
		change(&l.Controllers[i].Model)
	}
	for i := range l.RNGs {
		change(&l.RNGs[i].Model)
	}
	if l.MemBalloon != nil {
		change(&l.MemBalloon.Model)
	}
	return nil
}
