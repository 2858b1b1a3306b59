package libvirt_test

import (
	"bytes"
	"context"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/internal/testguest"
	"github.com/podvisor/podvisor/launcher/protocol"
)

func TestAGuestIsPausedResetAndPoweredOff(t *testing.T) {
	d := newDaemon(t)
	events := d.events()
	g := d.start("")
	require.NoError(t, d.Suspend(t.Context(), name))
	require.NoError(t, d.Suspend(t.Context(), name), "again")
	status, err := d.Status(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, libvirt.Status{State: libvirt.Paused, Pause: "User"}, status)
	require.NoError(t, d.Resume(t.Context(), name))
	require.NoError(t, d.Resume(t.Context(), name), "again")

	require.NoError(t, d.Reset(t.Context(), name))
	events.has(libvirt.Event{Domain: name, Kind: libvirt.Rebooted})
	g.says(testguest.Up, 2)

	require.ErrorContains(t, d.ShutdownByAgent(t.Context(), name), "shut down by its agent domain default_vm: ")
	require.NoError(t, d.Shutdown(t.Context(), name))
	g.says("power button pressed", 1)
	events.has(libvirt.Event{Domain: name, Kind: libvirt.ShutDown})
	events.has(libvirt.Event{Domain: name, Kind: libvirt.PoweredOff})
	_, err = d.Status(t.Context(), name)
	require.ErrorIs(t, err, libvirt.ErrNotFound)
}

func TestAScreenshotIsAnImage(t *testing.T) {
	d := newDaemon(t)
	d.start(`<video><model type="vga"/></video>`)
	file := filepath.Join(d.dir, "screen.png")
	for range 2 {
		require.NoError(t, d.Screenshot(t.Context(), name, file))
		image, err := os.ReadFile(file)
		require.NoError(t, err)
		_, err = png.Decode(bytes.NewReader(image))
		require.NoError(t, err)
		require.NoError(t, os.Remove(file))
	}
	require.ErrorIs(t, d.Screenshot(t.Context(), "default_other", file), libvirt.ErrNotFound)
	require.ErrorContains(t, d.Screenshot(t.Context(), name, filepath.Join(d.dir, "none", "screen.png")), "take a screenshot of domain default_vm: ")
}

func TestWithoutAScreenThereIsNoScreenshot(t *testing.T) {
	d := newDaemon(t)
	d.start("")
	require.ErrorContains(t, d.Screenshot(t.Context(), name, filepath.Join(d.dir, "screen.png")), "take a screenshot of domain default_vm: ")
}

func TestWhatADomainUsesIsCounted(t *testing.T) {
	d := newDaemon(t)
	g := d.start(`<disk type="file" device="disk"><driver name="qemu" type="raw"/><source file="` + d.file("data.img", make([]byte, 16<<20)) + `"/><target dev="vdb" bus="virtio"/><boot order="2"/></disk>
		<interface type="user"><mac address="02:00:00:00:00:01"/><model type="virtio"/></interface>`)
	g.types("w")
	g.says("disk written", 1)
	s, err := d.Stats(t.Context(), name)
	require.NoError(t, err)
	require.Positive(t, s.CPU)
	require.Len(t, s.VCPUs, 1)
	require.EqualValues(t, 32<<20, s.Memory.BalloonBytes)
	require.Greater(t, s.Memory.ResidentBytes, int64(16<<20))
	require.Len(t, s.Disks, 2)
	require.Equal(t, "vdb", s.Disks[1].Target)
	require.GreaterOrEqual(t, s.Disks[1].WriteBytes, int64(8<<20))
	require.Positive(t, s.Disks[1].WriteRequests)
	require.EqualValues(t, 16<<20, s.Disks[1].CapacityBytes)
	require.Positive(t, s.Disks[0].ReadBytes)

	_, ok, err := d.DirtyRate(t.Context(), name)
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, d.MeasureDirtyRate(t.Context(), name, time.Second))
	d.until("the measurement is over", func() error {
		_, ok, err := d.DirtyRate(t.Context(), name)
		if err == nil && !ok {
			err = errNotOver
		}
		return err
	})
}

func TestWhatIsCountedHasTheNamesOfLibvirt(t *testing.T) {
	d := newDaemon(t)
	d.start("")
	all, err := d.Counted(t.Context(), name, "cpu", "balloon", protocol.VCPU, "net", "block")
	require.NoError(t, err)
	for _, known := range []string{"cpu.time", "balloon.current", "vcpu.0.time", "block.0.rd.reqs"} {
		require.Contains(t, all, known)
	}
	require.Len(t, protocol.NewStats(all).Of(protocol.VCPU), 1)
	some, err := d.Counted(t.Context(), name, protocol.VCPU)
	require.NoError(t, err)
	require.Contains(t, some, "vcpu.0.time")
	require.NotContains(t, some, "block.0.rd.reqs", "libvirt was not asked for it")
	_, err = d.Counted(t.Context(), name, "disk")
	require.ErrorContains(t, err, `no statistics "disk"`)
	_, err = d.Counted(t.Context(), "no domain", protocol.VCPU)
	require.ErrorIs(t, err, libvirt.ErrNotFound)
}

// What libvirt found out of QEMU it writes to a file, which it makes once.
func TestADaemonReadsWhatQEMUCanDoBeforeItIsAskedForADomain(t *testing.T) {
	d := newDaemon(t)
	const records = "/cache/libvirt/qemu/cache/capabilities/*.xml"
	before, err := filepath.Glob(d.dir + records)
	require.NoError(t, err)
	require.Empty(t, before)
	require.NoError(t, d.Warm(t.Context()))
	after, err := filepath.Glob(d.dir + records)
	require.NoError(t, err)
	require.NotEmpty(t, after)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, d.Warm(ended), context.Canceled)
}
