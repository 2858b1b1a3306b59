package libvirt_test

import (
	"fmt"
	"testing"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
)

func TestAnIOErrorIsAnEventWithItsDisk(t *testing.T) {
	d := newDaemon(t)
	small := d.dir + "/small"
	d.mount(fmt.Sprintf("mkdir %s; mount -t tmpfs -o mode=0777,size=1m small %[1]s; truncate -s 64M %[1]s/data.img; chmod 666 %[1]s/data.img", small))
	events := d.events()
	g := d.start(`<disk type="file" device="disk"><driver name="qemu" type="raw" error_policy="stop"/><source file="` + small + `/data.img"/><target dev="vdb" bus="virtio"/><alias name="ua-data"/><boot order="2"/></disk>`)
	g.types("w")
	events.has(libvirt.Event{Domain: name, Kind: libvirt.IOError, Device: "ua-data", NoSpace: true, Action: libvirt.ActionPause})
	events.has(libvirt.Event{Domain: name, Kind: libvirt.Suspended, Pause: "IOError"})
}

func TestAWatchdogThatExpiresIsAnEvent(t *testing.T) {
	d := newDaemon(t)
	events := d.events()
	// The guest's driver is for a model of the ISA bus, which libvirt does not offer on q35.
	g := d.startWith(`<watchdog model="i6300esb" action="pause"/>`, `<qemu:arg value="-device"/><qemu:arg value="ib700"/>`)
	g.types("g")
	events.has(libvirt.Event{Domain: name, Kind: libvirt.WatchdogExpired, Action: libvirt.ActionPause})
	events.has(libvirt.Event{Domain: name, Kind: libvirt.Suspended, Pause: "Watchdog"})
}
