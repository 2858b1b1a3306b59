package supervisor

import (
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// watchdogGuest is testdata/watchdog.s.
const watchdogGuest = "" +
	"fa31c08ed8fcbe3a7cac08c07406baf803eeebf566b860a80080baf80c66" +
	"efb80700bafc0cef66b868a80080baf80c66efb002bafc0ceef4ebfd7465" +
	"73742067756573742069732075700a00"

// watching is a disk with the guest that starts its watchdog.
func watching() map[string][]byte {
	disk := bootable()
	code, err := hex.DecodeString(watchdogGuest)
	if err != nil {
		panic(err)
	}
	clear(disk["guest.img"][:510])
	copy(disk["guest.img"], code)
	return disk
}

func withWatchdog(action vmi.WatchdogAction) *vmi.VirtualMachineInstance {
	v := instance()
	v.Spec.Domain.Devices.Watchdog = &vmi.Watchdog{Name: "dog", WatchdogDevice: vmi.WatchdogDevice{I6300ESB: &vmi.I6300ESBWatchdog{Action: action}}}
	return v
}

func TestAWatchdogThatIsNotResetRestartsTheGuest(t *testing.T) {
	t.Parallel()
	p := newPod(t, watching())
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: withWatchdog(vmi.WatchdogReset)}))
	p.says("test guest is up", 2)
	p.reports("the reboot", func(s protocol.State) bool { return s.Reboots > 0 && s.Phase == protocol.Running })
}

// QEMU exits at once then. That the guest did not react is a failure of the VMI.
func TestAWatchdogThatIsNotResetEndsTheGuest(t *testing.T) {
	t.Parallel()
	p := newPod(t, watching())
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: withWatchdog(vmi.WatchdogPoweroff)}))
	p.ends(protocol.Crashed, expired)
}

func TestAWatchdogThatIsNotResetPressesThePowerButton(t *testing.T) {
	p := newPod(t, watching())
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: withWatchdog(vmi.WatchdogShutdown)}))
	p.until("the watchdog expires", func() bool { return strings.Contains(p.log.String(), `"action":"shutdown"`) })
	p.phase(protocol.Running) // this guest does not look at the button
}

func TestAGuestThatMayNotRebootEndsThen(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	v := instance()
	v.Spec.Domain.RebootPolicy = vmi.RebootPolicyTerminate
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: v}))
	p.says("test guest is up", 1)
	p.write("r")
	p.ends(protocol.Shutdown, "the guest powered off")
}

// wholeInstance has each device and feature that needs nothing of the pod, among them
// those that emulation leaves out.
func wholeInstance() *vmi.VirtualMachineInstance {
	v := withWatchdog(vmi.WatchdogReset)
	on := &vmi.FeatureState{}
	d := &v.Spec.Domain.Devices
	d.Rng, d.Sound, d.Video = &vmi.Rng{}, &vmi.Sound{Name: "speaker"}, &vmi.Video{Type: "virtio"}
	d.Inputs = []vmi.Input{{Name: "a", Type: vmi.InputTablet}, {Name: "b", Type: vmi.InputTablet, Bus: vmi.InputBusVirtio}}
	d.PanicDevices = []vmi.PanicDevice{{}, {Model: new(vmi.PanicDeviceHyperv)}}
	d.Disks[1].Disk = &vmi.DiskTarget{Bus: vmi.DiskBusSCSI}
	v.Spec.Domain.Chassis = &vmi.Chassis{Asset: "A-1"}
	v.Spec.Domain.Features = &vmi.Features{SMM: on, APIC: &vmi.FeatureAPIC{EndOfInterrupt: true}, KVM: &vmi.FeatureKVM{Hidden: true}, PVSpinlock: on, Hyperv: &vmi.FeatureHyperv{
		Relaxed: on, VAPIC: on, VPIndex: on, SyNICTimer: &vmi.FeatureSyNICTimer{Direct: on}, Spinlocks: &vmi.FeatureSpinlocks{}, Frequencies: on, TLBFlush: &vmi.FeatureTLBFlush{},
	}}
	v.Spec.Domain.Clock = &vmi.Clock{ClockOffset: vmi.ClockOffset{UTC: &vmi.ClockUTC{OffsetSeconds: new(60)}}, Timer: &vmi.Timer{
		HPET: &vmi.HPETTimer{Enabled: new(false)}, KVM: &vmi.KVMTimer{}, PIT: &vmi.PITTimer{TickPolicy: vmi.TickPolicyDelay},
		RTC: &vmi.RTCTimer{TickPolicy: vmi.TickPolicyCatchup, Track: vmi.RTCTrackGuest}, Hyperv: &vmi.HypervTimer{},
	}}
	v.Spec.Domain.Devices.AutoattachPodInterface = new(false)
	return defaults.Instance(v, defaults.Profile{})
}

// present is how many processors of a domain are there.
func present(d *libvirtxml.Domain) int {
	if d.VCPUs == nil {
		return int(d.VCPU.Value)
	}
	n := 0
	for _, v := range d.VCPUs.VCPU {
		if v.Enabled == "yes" {
			n++
		}
	}
	return n
}

// addresses are the addresses of a domain's devices, in an order of their own.
var addresses = regexp.MustCompile(`<address type="(pci|usb|drive|virtio-serial)"[^>]*>`)

func TestLibvirtTakesEachDeviceAtTheAddressThatItIsGiven(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*vmi.VirtualMachineInstance){
		"behind ports":        func(*vmi.VirtualMachineInstance) {},
		"on the root complex": func(v *vmi.VirtualMachineInstance) { v.Annotations[vmi.RootComplexAnnotation] = "true" },
		"transitional":        func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.UseVirtioTransitional = new(true) },
		"with room for more processors and memory": func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.CPU = &vmi.CPU{Sockets: 2, Cores: 2, MaxSockets: 63}
			v.Spec.Domain.Memory = &vmi.Memory{Guest: new(resource.MustParse("1Gi")), MaxGuest: new(resource.MustParse("4Gi"))}
		},
		"without hotplug": func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.DisableHotplug = true },
		"with the least": func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.Devices.AutoattachGraphicsDevice, v.Spec.Domain.Devices.Video = new(false), nil
			v.Spec.Domain.Devices.AutoattachMemBalloon = new(false)
			v.Spec.Domain.Features.ACPI.Enabled = new(false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPod(t, bootable())
			v := wholeInstance()
			change(v)
			require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: v}))
			p.says("test guest is up", 1)
			p.phase(protocol.Running)

			conn, err := libvirt.Dial(t.Context(), p.path("kubevirt-private/libvirt/run/libvirt/libvirt-sock"))
			require.NoError(t, err)
			defer conn.Close()
			running, err := conn.Describe(t.Context(), domain.Name(v))
			require.NoError(t, err)
			require.Equal(t, int(v.Spec.Domain.CPU.VCPUs()), present(running), "the processors that the guest has")
			require.Equal(t, v.Spec.Domain.Memory.Guest.Value(), int64(running.CurrentMemory.Value)<<10, "the memory that the guest has")
			text, err := running.Marshal()
			require.NoError(t, err)
			have := addresses.FindAllString(text, -1)

			built, err := domain.Build(v, domain.Host{AllowEmulation: true, Disks: map[string]domain.Disk{"root": {}, "seed": {}, "empty": {}}})
			require.NoError(t, err)
			text, err = built.Marshal()
			require.NoError(t, err)
			for _, want := range addresses.FindAllString(text, -1) {
				require.Contains(t, have, want)
				have = slices.DeleteFunc(have, func(a string) bool { return a == want })
			}
			require.Equal(t, []string{
				`<address type="pci" domain="0x0000" bus="0x00" slot="0x1f" function="0x2">`,
				`<address type="virtio-serial" controller="0" bus="0" port="1">`,
			}, have, "only q35's own controller and the agent's channel have an address of libvirt's")
		})
	}
}
