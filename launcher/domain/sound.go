package domain

import (
	"cmp"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// soundSlot is the slot of the sound card.
const soundSlot = 0x1b

// soundPart is the sound card.
//
// +podvisor:entry
var soundPart = Part{
	Name: "sound", Build: sound,
	Devices: func(l *libvirtxml.DomainDeviceList) []Device {
		return devicesOf(l.Sounds, func(n int, s *libvirtxml.DomainSound) Device {
			return Device{Name: "the sound card", Address: &s.Address, At: OnRoot(soundSlot, n)}
		})
	},
}

// sound adds the guest's sound card, if the spec has one. What it plays is
// discarded.
func sound(b *Draft) error {
	s := b.Spec.Devices.Sound
	if s == nil {
		return nil
	}
	b.Domain.Devices.Sounds = []libvirtxml.DomainSound{{Model: string(cmp.Or(s.Model, vmi.SoundICH9)), Alias: deviceAlias("sound", s.Name)}}
	b.Domain.Devices.Audios = []libvirtxml.DomainAudio{{ID: 1, None: &libvirtxml.DomainAudioNone{}}}
	return nil
}
