package domain

import (
	"cmp"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

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
