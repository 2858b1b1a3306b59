package domain

import (
	"cmp"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// watchdogSlot is the slot of the watchdog.
const watchdogSlot = 0x15

// watchdogPart is the watchdog.
//
// +podvisor:entry
var watchdogPart = Part{
	Name: "watchdog", Build: watchdog,
	Devices: func(l *libvirtxml.DomainDeviceList) []Device {
		return devicesOf(l.Watchdogs, func(n int, w *libvirtxml.DomainWatchdog) Device {
			return Device{Name: "the watchdog", Address: &w.Address, At: OnRoot(watchdogSlot, n)}
		})
	},
}

// watchdog adds the device that acts when the guest stops resetting its timer.
func watchdog(b *Draft) error {
	w := b.Spec.Devices.Watchdog
	if w == nil {
		return nil
	}
	out := libvirtxml.DomainWatchdog{Model: "i6300esb", Alias: deviceAlias("watchdog", w.Name)}
	action := vmi.WatchdogAction("")
	switch {
	case w.Diag288 != nil:
		out.Model, action = "diag288", w.Diag288.Action
	case w.I6300ESB != nil:
		action = w.I6300ESB.Action
	}
	out.Action = string(cmp.Or(action, vmi.WatchdogReset))
	b.Domain.Devices.Watchdogs = []libvirtxml.DomainWatchdog{out}
	return nil
}
