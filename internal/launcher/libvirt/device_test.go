package libvirt_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
)

var errNotOver = errors.New("it is not over")

func TestADiskIsAttachedAndDetached(t *testing.T) {
	d := newDaemon(t)
	events := d.events()
	g := d.start(`<controller type="scsi" model="virtio-scsi"/>`)
	disk := &libvirtxml.DomainDisk{}
	require.NoError(t, disk.Unmarshal(`<disk type="file" device="disk"><driver name="qemu" type="raw"/><source file="`+d.file("data.img", make([]byte, 1<<20))+`"/><target dev="sda" bus="scsi"/><alias name="ua-data"/></disk>`))
	require.NoError(t, d.Attach(t.Context(), name, disk))
	require.Len(t, g.described().Devices.Disks, 2)
	require.ErrorContains(t, d.Attach(t.Context(), name, disk), "attach a device to domain default_vm: ", "its place is taken")
	require.NoError(t, d.Detach(t.Context(), name, "ua-data"))
	events.has(libvirt.Event{Domain: name, Kind: libvirt.DeviceRemoved, Device: "ua-data"})
	require.Len(t, g.described().Devices.Disks, 1)
	require.ErrorContains(t, d.Detach(t.Context(), name, "ua-data"), "detach device ua-data from domain default_vm: ")
}

func TestTheMediumOfADriveIsChanged(t *testing.T) {
	d := newDaemon(t)
	g := d.start(`<disk type="file" device="cdrom"><driver name="qemu" type="raw"/><target dev="sda" bus="sata"/><readonly/><alias name="ua-cd"/></disk>`)
	require.Empty(t, g.files("sda"))
	medium := d.file("medium.iso", make([]byte, 1<<20))
	disk := &libvirtxml.DomainDisk{}
	require.NoError(t, disk.Unmarshal(`<disk type="file" device="cdrom"><driver name="qemu" type="raw"/><source file="`+medium+`"/><target dev="sda" bus="sata"/><readonly/></disk>`))
	require.NoError(t, d.Update(t.Context(), name, disk))
	require.Equal(t, []string{medium}, g.files("sda"))
}
