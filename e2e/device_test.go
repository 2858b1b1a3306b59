package e2e

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// looks shows what the guest finds of its hardware, and then starts the watchdog: two
// stages of a second, without an interrupt.
const looks = `#!/bin/sh
exec > /dev/console 2>&1
printf '#!/bin/sh\n[ "$1" = bound ] && echo "$bootfile $boot_file $tftp $ntpsrv $opt240"\n' > /run/options
chmod +x /run/options
for d in /sys/bus/pci/devices/*; do echo "found ${d##*/} $(cat $d/vendor) $(cat $d/device)"; done
for n in /sys/class/net/*; do echo "found ${n##*/} $(readlink -f $n/device)"; done
for f in chassis_asset_tag chassis_vendor chassis_version chassis_serial product_serial product_uuid; do echo "found $f $(cat /sys/class/dmi/id/$f)"; done
echo "found sku $(strings /sys/firmware/dmi/tables/DMI | grep '^sku-')"
echo "found options $(udhcpc -i eth0 -n -q -f -O bootfile -O tftp -O ntpsrv -O 240 -s /run/options | tail -n 1)"
echo "found rng $(cat /sys/class/misc/hw_random/rng_available)"
echo "found input $(cat /sys/class/input/input*/name | tr '\n' ' ')"
echo "found clock $(cat /sys/class/rtc/rtc0/date)"
c=/sys/bus/pci/devices/0000:00:15.0/config
printf '\007\000' | dd of=$c bs=2 seek=48 count=1 conv=notrunc
printf '\002' | dd of=$c bs=1 seek=104 count=1 conv=notrunc
`

// The guest never resets its watchdog, which restarts it then; and a guest that may
// not reboot ends.
func TestAGuestFindsItsDevicesWhereTheyAreAndItsWatchdogFires(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	v := guest("devices", looks, vmitest.WithMemory("128Mi"), func(v *vmi.VirtualMachineInstance) {
		d := &v.Spec.Domain
		d.RebootPolicy = vmi.RebootPolicyTerminate
		d.Chassis = &vmi.Chassis{Asset: "rack-7", Manufacturer: "Acme", Version: "2.1", Serial: "C-42", Sku: "sku-9"}
		d.Firmware = &vmi.Firmware{UUID: "5d307ca9-b3ef-428c-8861-06e72d69f223", Serial: "S-77"}
		d.Devices.Interfaces[0].DHCPOptions = &vmi.DHCPOptions{
			BootFileName: "boot.ipxe", TFTPServerName: "tftp.example.com", NTPServers: []string{"192.0.2.8"},
			PrivateOptions: []vmi.DHCPPrivateOption{{Option: 240, Value: "private"}},
		}
		d.Clock = &vmi.Clock{ClockOffset: vmi.ClockOffset{UTC: &vmi.ClockUTC{OffsetSeconds: new(-400 * 24 * 3600)}}, Timer: &vmi.Timer{HPET: &vmi.HPETTimer{Enabled: new(false)}}}
		// What emulation does not have is left out.
		d.Features = &vmi.Features{KVM: &vmi.FeatureKVM{Hidden: true}, Hyperv: &vmi.FeatureHyperv{Relaxed: &vmi.FeatureState{}, SyNICTimer: &vmi.FeatureSyNICTimer{}}}
		d.Devices.Rng, d.Devices.Sound, d.Devices.Video = &vmi.Rng{}, &vmi.Sound{Name: "speaker"}, &vmi.Video{Type: "virtio"}
		d.Devices.Watchdog = &vmi.Watchdog{Name: "dog", WatchdogDevice: vmi.WatchdogDevice{I6300ESB: &vmi.I6300ESBWatchdog{Action: vmi.WatchdogReset}}}
		d.Devices.Inputs = []vmi.Input{{Name: "pointer", Type: vmi.InputTablet, Bus: vmi.InputBusVirtio}, {Name: "other", Type: vmi.InputTablet, Bus: vmi.InputBusUSB}}
	})
	v = s.create(v)
	s.awaitPhase(v.Name, vmi.PhaseRunning)
	shown := s.keepConsole(v)
	s.awaitPhase(v.Name, vmi.PhaseSucceeded)
	out := shown()
	for _, want := range []string{
		"found 0000:00:01.0 0x1af4 0x1050", // graphics card
		"found 0000:00:10.0 0x1b36 0x000d", // USB
		"found 0000:00:11.0 0x1af4 0x1048", // SCSI
		"found 0000:00:13.0 0x1af4 0x1045", // balloon
		"found 0000:00:14.0 0x1af4 0x1044", // random numbers
		"found 0000:00:15.0 0x8086 0x25ab", // watchdog
		"found 0000:00:18.0 0x1af4 0x1052", // tablet
		"found 0000:00:1b.0 0x8086 0x293e", // sound
		"found 0000:01:00.0 0x1af4 0x1041", // interface
		"found 0000:05:00.0 0x1af4 0x1042", // disk vda
		"found chassis_asset_tag rack-7", "found chassis_vendor Acme", "found chassis_version 2.1", "found chassis_serial C-42", "found sku sku-9",
		"found product_serial S-77", "found product_uuid 5d307ca9-b3ef-428c-8861-06e72d69f223",
		"found options boot.ipxe ", " tftp.example.com 192.0.2.8 " + hex.EncodeToString([]byte("private")),
		"found rng virtio_rng",
		"QEMU Virtio Tablet",
	} {
		require.Contains(t, out, want)
	}
	require.NotContains(t, out, time.Now().UTC().Format("found clock 2006"), "the clock is 400 days behind")
}
