package libvirt_test

import (
	"fmt"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/libvirt"
)

func TestAnIOErrorIsAnEventWithItsDisk(t *testing.T) {
	d := newDaemon(t)
	small := d.dir + "/small"
	out, err := exec.Command("sh", "-c", fmt.Sprintf("mkdir %s && mount -t tmpfs -o mode=0777,size=1m small %[1]s && truncate -s 64M %[1]s/data.img && chmod 666 %[1]s/data.img", small)).CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Cleanup(func() { _ = exec.Command("umount", "-l", small).Run() })
	events := d.events()
	g := d.start(`<disk type="file" device="disk"><driver name="qemu" type="raw" error_policy="stop"/><source file="` + small + `/data.img"/><target dev="vdb" bus="virtio"/><alias name="ua-data"/><boot order="2"/></disk>`)
	g.types("w")
	events.has(libvirt.Event{Domain: name, Kind: libvirt.IOError, Device: "ua-data", NoSpace: true, Action: libvirt.ActionPause})
	events.has(libvirt.Event{Domain: name, Kind: libvirt.Suspended, Pause: "IOError"})
}

func TestAWatchdogThatExpiresIsAnEvent(t *testing.T) {
	d := newDaemon(t)
	events := d.events()
	g := d.start(`<watchdog model="ib700" action="pause"/>`)
	g.types("g")
	events.has(libvirt.Event{Domain: name, Kind: libvirt.WatchdogExpired, Action: libvirt.ActionPause})
	events.has(libvirt.Event{Domain: name, Kind: libvirt.Suspended, Pause: "Watchdog"})
}
