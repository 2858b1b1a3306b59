package main

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/instancetype"
)

type (
	preferred     = instancetype.VirtualMachineClusterPreference
	preferredSpec = instancetype.VirtualMachinePreferenceSpec
	preference    = func(*preferredSpec)
)

// guests are what preferences are for: each has all of the preferences.
var guests = []struct {
	name string
	all  []preference
}{
	{"linux", []preference{linux}},
	{"linux.efi", []preference{linux, signed}},
	{"linux.virtiotransitional", []preference{linux, transitional}},
	{"alpine", []preference{linux}},
	{"centos.stream9", []preference{linux, signed}},
	{"centos.stream9.desktop", []preference{linux, signed, desktop}},
	{"centos.stream9.dpdk", []preference{linux, signed, dpdk}},
	{"centos.stream10", []preference{linux, signed}},
	{"centos.stream10.desktop", []preference{linux, signed, desktop}},
	{"cirros", []preference{linux}},
	{"debian", []preference{linux}},
	{"fedora", []preference{linux, signed}},
	{"opensuse.leap", []preference{linux}},
	{"opensuse.tumbleweed", []preference{linux}},
	{"oraclelinux", []preference{linux}},
	{"rhel.7", []preference{linux}},
	{"rhel.7.desktop", []preference{linux, desktop}},
	{"rhel.8", []preference{linux}},
	{"rhel.8.desktop", []preference{linux, desktop}},
	{"rhel.8.dpdk", []preference{linux, dpdk}},
	{"rhel.9", []preference{linux, signed}},
	{"rhel.9.desktop", []preference{linux, signed, desktop}},
	{"rhel.9.dpdk", []preference{linux, signed, dpdk}},
	{"rhel.10", []preference{linux, signed}},
	{"sles", []preference{linux}},
	{"ubuntu", []preference{linux}},

	{"windows.7", []preference{windows, emulated("e1000")}},
	{"windows.7.virtio", []preference{windows, virtio}},
	{"windows.10", []preference{windows, emulated("e1000e"), requires(1, "2Gi")}},
	{"windows.10.virtio", []preference{windows, virtio, requires(1, "2Gi")}},
	{"windows.11", []preference{windows, emulated("e1000e"), trusted, requires(2, "4Gi")}},
	{"windows.11.virtio", []preference{windows, virtio, trusted, requires(2, "4Gi")}},
	{"windows.2k8", []preference{windows, emulated("e1000")}},
	{"windows.2k8.virtio", []preference{windows, virtio}},
	{"windows.2k12", []preference{windows, emulated("e1000e")}},
	{"windows.2k12.virtio", []preference{windows, virtio}},
	{"windows.2k16", []preference{windows, emulated("e1000e")}},
	{"windows.2k16.virtio", []preference{windows, virtio}},
	{"windows.2k19", []preference{windows, emulated("e1000e")}},
	{"windows.2k19.virtio", []preference{windows, virtio}},
	{"windows.2k22", []preference{windows, emulated("e1000e")}},
	{"windows.2k22.virtio", []preference{windows, virtio}},
	{"windows.2k25", []preference{windows, emulated("e1000e")}},
	{"windows.2k25.virtio", []preference{windows, virtio}},
}

// linux has the drivers of virtio.
func linux(p *preferredSpec) {
	p.Annotations = map[string]string{osAnnotation: "linux"}
	p.Devices = &instancetype.DevicePreferences{
		PreferredDiskBus: vmi.DiskBusVirtio, PreferredInterfaceModel: vmi.InterfaceModelVirtio, PreferredRng: &vmi.Rng{},
	}
}

// osAnnotation says what runs in a VMI, for dashboards.
const osAnnotation = "vm.kubevirt.io/os"

// signed has a boot loader that is signed for UEFI. Secure boot needs the system management
// mode.
func signed(p *preferredSpec) {
	p.Firmware = &instancetype.FirmwarePreferences{PreferredEfi: &vmi.EFI{SecureBoot: new(true)}}
	p.Features = &instancetype.FeaturePreferences{PreferredSmm: &vmi.FeatureState{}}
}

// transitional has drivers of virtio from before 1.0.
func transitional(p *preferredSpec) { p.Devices.PreferredUseVirtioTransitional = new(true) }

// desktop has a pointer at the place where it is seen on the screen.
func desktop(p *preferredSpec) {
	d := p.Devices
	d.PreferredAutoattachInputDevice, d.PreferredInputBus, d.PreferredInputType = new(true), vmi.InputBusVirtio, vmi.InputTablet
}

// dpdk has a queue of its interfaces for each processor. A core has two threads, and a
// socket four cores.
func dpdk(p *preferredSpec) {
	p.Devices.PreferredNetworkInterfaceMultiQueue = new(true)
	p.CPU = &instancetype.CPUPreferences{
		PreferredCPUTopology: new(instancetype.TopologySpread),
		SpreadOptions:        &instancetype.SpreadOptions{Across: new(instancetype.SpreadSocketsCoresThreads), Ratio: new(uint32(4))},
	}
}

// windows counts sockets as processors, knows Hyper-V, and takes long to power off.
func windows(p *preferredSpec) {
	on := &vmi.FeatureState{}
	p.Annotations = map[string]string{osAnnotation: "windows"}
	p.CPU = &instancetype.CPUPreferences{PreferredCPUTopology: new(instancetype.TopologySockets)}
	p.Features = &instancetype.FeaturePreferences{
		PreferredAcpi: on, PreferredApic: &vmi.FeatureAPIC{},
		PreferredHyperv: &vmi.FeatureHyperv{
			Relaxed: on, VAPIC: on, VPIndex: on, Runtime: on, SyNIC: on, Reset: on, Frequencies: on, Reenlightenment: on, IPI: on,
			TLBFlush: &vmi.FeatureTLBFlush{}, Spinlocks: &vmi.FeatureSpinlocks{Retries: new(uint32(8191))},
			SyNICTimer: &vmi.FeatureSyNICTimer{Direct: on},
		},
	}
	p.Clock = &instancetype.ClockPreferences{
		PreferredClockOffset: &vmi.ClockOffset{UTC: &vmi.ClockUTC{}},
		PreferredTimer: &vmi.Timer{
			HPET: &vmi.HPETTimer{Enabled: new(false)}, PIT: &vmi.PITTimer{TickPolicy: vmi.TickPolicyDelay},
			RTC: &vmi.RTCTimer{TickPolicy: vmi.TickPolicyCatchup}, Hyperv: &vmi.HypervTimer{},
		},
	}
	p.PreferredTerminationGracePeriodSeconds = new(int64(3600))
	p.Devices = &instancetype.DevicePreferences{
		PreferredAutoattachInputDevice: new(true), PreferredInputBus: vmi.InputBusUSB, PreferredInputType: vmi.InputTablet,
	}
}

// emulated is for a guest that has only the drivers it comes with.
func emulated(model vmi.InterfaceModel) preference {
	return func(p *preferredSpec) {
		p.Devices.PreferredDiskBus, p.Devices.PreferredCdromBus, p.Devices.PreferredInterfaceModel = vmi.DiskBusSATA, vmi.DiskBusSATA, model
	}
}

// virtio is for a guest whose disk has the drivers of virtio.
func virtio(p *preferredSpec) {
	p.Devices.PreferredDiskBus, p.Devices.PreferredCdromBus = vmi.DiskBusVirtio, vmi.DiskBusSATA
	p.Devices.PreferredInterfaceModel, p.Devices.PreferredVideoType = vmi.InterfaceModelVirtio, "virtio"
}

// trusted keeps the variables of UEFI and a TPM, as Windows 11 requires.
func trusted(p *preferredSpec) {
	p.Firmware = &instancetype.FirmwarePreferences{PreferredEfi: &vmi.EFI{SecureBoot: new(true), Persistent: new(true)}}
	p.Features.PreferredSmm = &vmi.FeatureState{}
	p.Devices.PreferredTPM = &vmi.TPM{Persistent: new(true)}
}

// requires is what the maker of the guest says that it needs.
func requires(cpus uint32, memory string) preference {
	return func(p *preferredSpec) {
		p.Requirements = &instancetype.PreferenceRequirements{
			CPU: &instancetype.CPURequirement{Guest: cpus}, Memory: &instancetype.MemoryRequirement{Guest: resource.MustParse(memory)},
		}
	}
}

// preferences are those of all guests.
func preferences() []*preferred {
	var out []*preferred
	for _, g := range guests {
		p := &preferred{}
		p.Name = g.name
		p.Labels = map[string]string{"instancetype.kubevirt.io/vendor": vendor}
		for _, prefer := range g.all {
			prefer(&p.Spec)
		}
		out = append(out, p)
	}
	return out
}
