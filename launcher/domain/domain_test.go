package domain

import (
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/internal/golden"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// instance has no device that is optional.
func instance(change ...func(*vmi.VirtualMachineInstance)) *vmi.VirtualMachineInstance {
	v := &vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "vm", UID: "6f1c2a3e-9a43-4f0e-8d2b-0c54a7b1e9d2"}}
	v.Spec.Domain.Memory = &vmi.Memory{Guest: new(resource.MustParse("128Mi"))}
	for _, c := range change {
		c(v)
	}
	return v
}

func disksOn(buses ...vmi.DiskBus) func(*vmi.VirtualMachineInstance) {
	return func(v *vmi.VirtualMachineInstance) {
		for i, b := range buses {
			name := "disk" + letters(i)
			v.Spec.Domain.Devices.Disks = append(v.Spec.Domain.Devices.Disks, vmi.Disk{Name: name, Disk: &vmi.DiskTarget{Bus: b}})
		}
	}
}

func interfaces(all ...vmi.Interface) func(*vmi.VirtualMachineInstance) {
	return func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.Interfaces = all }
}

func processor(model string) func(*vmi.VirtualMachineInstance) {
	return func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.CPU = &vmi.CPU{Model: model} }
}

// host has KVM and, for every disk and interface of v, something to attach.
func host(v *vmi.VirtualMachineInstance, change ...func(*Host)) Host {
	h := Host{KVM: true, Disks: map[string]Disk{}}
	for _, d := range v.Spec.Domain.Devices.Disks {
		h.Disks[d.Name] = Disk{DirectIO: true, Attachment: storage.Attachment{Name: d.Name, Path: "/disks/" + d.Name + ".raw", Format: storage.Raw}}
	}
	for _, i := range v.Spec.Domain.Devices.Interfaces {
		h.Interfaces = append(h.Interfaces, network.Attachment{Name: i.Name, Tap: "tap-" + i.Name, MAC: "02:00:00:00:00:01"})
	}
	for _, c := range change {
		c(&h)
	}
	return h
}

func emulated(h *Host) { h.KVM, h.AllowEmulation = false, true }

func overlay(h *Host) {
	d := h.Disks["diska"]
	d.Format, d.Path = storage.QCOW2, "/overlays/diska.qcow2"
	d.Source = storage.Overlay{Base: storage.Image{Path: "/images/diska.qcow2", Format: storage.QCOW2}}
	h.Disks["diska"] = d
}

func uefi(e vmi.EFI) func(*vmi.VirtualMachineInstance) {
	return func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Firmware = &vmi.Firmware{Bootloader: &vmi.Bootloader{EFI: &e}}
		v.Spec.Domain.Features = &vmi.Features{SMM: &vmi.FeatureState{}}
	}
}

// onMemoryNodes asks for the memory nodes of the node.
func onMemoryNodes(v *vmi.VirtualMachineInstance) {
	v.Spec.Domain.CPU = &vmi.CPU{Sockets: 3, MaxSockets: 4, DedicatedCPUPlacement: true, NUMA: &vmi.NUMA{GuestMappingPassthrough: &vmi.NUMAGuestMappingPassthrough{}}}
	v.Spec.Domain.Memory = &vmi.Memory{Guest: new(resource.MustParse("130Mi")), Hugepages: &vmi.Hugepages{PageSize: "2Mi"}}
}

func twoNodes(h *Host) {
	h.CPUs = []HostCPU{{ID: 1, Node: 1, Core: 1}, {ID: 2, Core: 2}, {ID: 3, Node: 1, Core: 3}}
	h.MemoryNodes = []int{0, 1}
}

// windows has what manifests of Windows guests have.
func windows(v *vmi.VirtualMachineInstance) {
	on := func() *vmi.FeatureState { return &vmi.FeatureState{} }
	v.Spec.Domain.Features = &vmi.Features{APIC: &vmi.FeatureAPIC{EndOfInterrupt: true}, SMM: on(), Hyperv: &vmi.FeatureHyperv{
		Relaxed: on(), VAPIC: on(), VPIndex: on(), Runtime: on(), Reset: on(), Frequencies: on(), Reenlightenment: on(), IPI: on(),
		Spinlocks: &vmi.FeatureSpinlocks{Retries: new(uint32(8191))}, SyNICTimer: &vmi.FeatureSyNICTimer{Direct: on()},
		VendorID: &vmi.FeatureVendorID{VendorID: "Podvisor"}, TLBFlush: &vmi.FeatureTLBFlush{}, EVMCS: &vmi.FeatureState{Enabled: new(false)},
	}}
	v.Spec.Domain.Clock = &vmi.Clock{ClockOffset: vmi.ClockOffset{UTC: &vmi.ClockUTC{}}, Timer: &vmi.Timer{
		HPET: &vmi.HPETTimer{Enabled: new(false)}, Hyperv: &vmi.HypervTimer{}, KVM: &vmi.KVMTimer{},
		PIT: &vmi.PITTimer{TickPolicy: vmi.TickPolicyDelay}, RTC: &vmi.RTCTimer{TickPolicy: vmi.TickPolicyCatchup},
	}}
	v.Spec.Domain.Devices.PanicDevices = []vmi.PanicDevice{{Model: new(vmi.PanicDeviceHyperv)}}
	*v = *defaults.Instance(v, defaults.Profile{})
	v.Spec.Domain.Devices.Interfaces = nil
}

// optionalDevices has one of each device that a guest has only if its spec does.
func optionalDevices(v *vmi.VirtualMachineInstance) {
	d := &v.Spec.Domain.Devices
	d.Rng, d.Sound, d.Video = &vmi.Rng{}, &vmi.Sound{Name: "sound"}, &vmi.Video{Type: "virtio"}
	d.Watchdog = &vmi.Watchdog{Name: "dog", WatchdogDevice: vmi.WatchdogDevice{I6300ESB: &vmi.I6300ESBWatchdog{Action: vmi.WatchdogPoweroff}}}
	d.Inputs = []vmi.Input{{Name: "a", Type: vmi.InputTablet, Bus: vmi.InputBusUSB}, {Name: "b", Type: vmi.InputTablet, Bus: vmi.InputBusVirtio}, {Name: "c", Type: vmi.InputTablet}}
}

// encrypted has each device whose buffers the guest shares with its node.
func encrypted(s vmi.SEV) *vmi.VirtualMachineInstance {
	return instance(uefi(vmi.EFI{SecureBoot: new(false)}), optionalDevices, disksOn(vmi.DiskBusVirtio, vmi.DiskBusSATA, vmi.DiskBusSCSI),
		interfaces(vmi.Interface{Name: "default"}, vmi.Interface{Name: "old", Model: "e1000"}), func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.LaunchSecurity = &vmi.LaunchSecurity{SEV: &s}
			v.Spec.Domain.Devices.Filesystems = []vmi.Filesystem{{Name: "data", Virtiofs: &vmi.FilesystemVirtiofs{}}}
		})
}

// multus are networks of Multus of these names.
func multus(names ...string) func(*vmi.VirtualMachineInstance) {
	return func(v *vmi.VirtualMachineInstance) {
		v.Spec.Networks = nil
		for _, n := range names {
			v.Spec.Networks = append(v.Spec.Networks, vmi.Network{Name: n, NetworkSource: vmi.NetworkSource{Multus: &vmi.MultusNetwork{NetworkName: n}}})
		}
	}
}

// passedThrough are interfaces of these names with the binding sriov.
func passedThrough(names ...string) func(*vmi.VirtualMachineInstance) {
	return func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Devices.Interfaces = nil
		for _, n := range names {
			v.Spec.Domain.Devices.Interfaces = append(v.Spec.Domain.Devices.Interfaces, vmi.Interface{Name: n, InterfaceBinding: vmi.InterfaceBinding{SRIOV: &vmi.InterfaceSRIOV{}}})
		}
	}
}

// architecture takes out what its guests do not have.
func architecture(arch, machineType string) func(*vmi.VirtualMachineInstance) {
	return func(v *vmi.VirtualMachineInstance) {
		v.Spec.Architecture, v.Spec.Domain.Machine = arch, &vmi.Machine{Type: machineType}
		d := &v.Spec.Domain.Devices
		d.Sound, d.Watchdog = nil, nil
		if arch == "arm64" {
			v.Spec.Domain.Firmware = &vmi.Firmware{Bootloader: &vmi.Bootloader{EFI: &vmi.EFI{SecureBoot: new(false)}}}
		}
		if arch == "s390x" {
			d.Inputs = []vmi.Input{{Name: "b", Type: vmi.InputTablet, Bus: vmi.InputBusVirtio}}
		}
	}
}

var cases = map[string]struct {
	vmi  *vmi.VirtualMachineInstance
	host []func(*Host)
}{
	"minimal":   {vmi: instance()},
	"emulation": {instance(), []func(*Host){emulated}},
	"cpu":       {vmi: instance(func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.CPU = &vmi.CPU{Sockets: 2, Cores: 3, Threads: 2} })},
	"cpu-model": {vmi: instance(func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.CPU = &vmi.CPU{Model: "Haswell", Features: []vmi.CPUFeature{{Name: "pcid"}, {Name: "vmx", Policy: vmi.CPUFeatureForbid}, {Name: "hle", Policy: vmi.CPUFeatureOptional}}}
	})},
	"cpu-model-emulated": {instance(processor("Westmere")), []func(*Host){emulated}},
	"cpu-features": {vmi: instance(func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.CPU = &vmi.CPU{Features: []vmi.CPUFeature{{Name: "vmx", Policy: vmi.CPUFeatureDisable}, {Name: "mpx", Policy: vmi.CPUFeatureForce}}}
	})},
	"host-devices": {instance(func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Devices.GPUs = []vmi.GPU{
			{Name: "whole", DeviceName: "nvidia.com/GP102GL_Tesla_P40"},
			{Name: "part", DeviceName: "nvidia.com/GRID_T4-1Q"},
			{Name: "second", DeviceName: "nvidia.com/GRID_T4-1Q"},
			{Name: "plain", DeviceName: "nvidia.com/GRID_T4-1Q", VirtualGPUOptions: &vmi.VGPUOptions{Display: &vmi.VGPUDisplayOptions{RamFB: &vmi.FeatureState{Enabled: new(false)}}}},
			{Name: "dark", DeviceName: "nvidia.com/GRID_T4-1Q", VirtualGPUOptions: &vmi.VGPUOptions{Display: &vmi.VGPUDisplayOptions{Enabled: new(false)}}},
		}
		v.Spec.Domain.Devices.HostDevices = []vmi.HostDevice{{Name: "qat-a", DeviceName: "intel.com/qat"}, {Name: "qat-b", DeviceName: "intel.com/qat"}}
	}), []func(*Host){func(h *Host) {
		h.HostDevices = map[string]string{
			"PCI_RESOURCE_NVIDIA_COM_GP102GL_TESLA_P40": "0000:65:00.0",
			"MDEV_PCI_RESOURCE_NVIDIA_COM_GRID_T4-1Q": "4b20d080-1b54-4048-85b3-a6a62d165c01,4b20d080-1b54-4048-85b3-a6a62d165c02," +
				"4b20d080-1b54-4048-85b3-a6a62d165c03,4b20d080-1b54-4048-85b3-a6a62d165c04",
			"PCI_RESOURCE_INTEL_COM_QAT": "0000:3d:01.0,0000:3d:01.7",
		}
	}}},
	"sriov": {instance(interfaces(
		vmi.Interface{Name: "default"},
		vmi.Interface{Name: "red", BootOrder: new(uint(2)), InterfaceBinding: vmi.InterfaceBinding{SRIOV: &vmi.InterfaceSRIOV{}}},
		vmi.Interface{Name: "blue", PciAddress: "0000:08:00.0", InterfaceBinding: vmi.InterfaceBinding{SRIOV: &vmi.InterfaceSRIOV{}}},
	), multus("default", "blue", "red"), func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Devices.HostDevices = []vmi.HostDevice{{Name: "qat", DeviceName: "intel.com/qat"}}
	}), []func(*Host){func(h *Host) {
		h.HostDevices = map[string]string{
			"PCI_RESOURCE_INTEL_COM_QAT": "0000:3d:01.0",
			// In the order of the networks: the first one is blue's.
			"PCIDEVICE_INTEL_COM_SRIOV_NETDEVICE":      "0000:81:02.0,0000:81:02.1",
			"PCIDEVICE_INTEL_COM_SRIOV_NETDEVICE_INFO": `{"0000:81:02.0":{"generic":{"deviceID":"0000:81:02.0"}}}`,
		}
	}}},
	"sriov-resources": {instance(interfaces(
		vmi.Interface{Name: "red", InterfaceBinding: vmi.InterfaceBinding{SRIOV: &vmi.InterfaceSRIOV{}}},
		vmi.Interface{Name: "blue", InterfaceBinding: vmi.InterfaceBinding{SRIOV: &vmi.InterfaceSRIOV{}}},
		vmi.Interface{Name: "green", InterfaceBinding: vmi.InterfaceBinding{SRIOV: &vmi.InterfaceSRIOV{}}},
	), multus("red", "blue", "green")), []func(*Host){func(h *Host) {
		h.HostDevices = map[string]string{
			"PCIDEVICE_INTEL_COM_SRIOV_A":        "0000:81:02.0,0000:81:02.1", // red and green
			"PCIDEVICE_MELLANOX-NET_COM_SRIOV_B": "0000:82:02.0",
			"KUBEVIRT_RESOURCE_NAME_red":         "intel.com/sriov_a",
			"KUBEVIRT_RESOURCE_NAME_blue":        "mellanox-net.com/sriov-b",
			"KUBEVIRT_RESOURCE_NAME_green":       "intel.com/sriov_a",
		}
	}}},
	"hugepages": {vmi: instance(func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Memory.Hugepages = &vmi.Hugepages{PageSize: "2Mi"} })},
	"dedicated": {instance(func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.CPU = &vmi.CPU{Cores: 2, Threads: 2, DedicatedCPUPlacement: true}
	}),
		[]func(*Host){func(h *Host) {
			h.CPUs = []HostCPU{{ID: 2, Core: 1}, {ID: 3, Core: 2}, {ID: 6, Core: 1}, {ID: 7, Core: 2}}
		}}},
	"dedicated-emulator": {instance(func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.CPU = &vmi.CPU{Threads: 2, DedicatedCPUPlacement: true, IsolateEmulatorThread: true}
	}), []func(*Host){func(h *Host) { h.CPUs = []HostCPU{{ID: 1, Core: 1}, {ID: 4, Core: 2}, {ID: 9, Core: 2}} }}},
	"spare-sockets": {vmi: instance(func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.CPU = &vmi.CPU{Sockets: 2, Cores: 2, MaxSockets: 3}
	})},
	"spare-sockets-emulated": {instance(func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.CPU = &vmi.CPU{Sockets: 2, Cores: 2, MaxSockets: 3}
	}), []func(*Host){emulated}},
	"spare-memory": {vmi: instance(func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.CPU = &vmi.CPU{Cores: 2}
		v.Spec.Domain.Memory = &vmi.Memory{Guest: new(resource.MustParse("1Gi")), MaxGuest: new(resource.MustParse("4Gi"))}
	})},
	"numa": {instance(onMemoryNodes), []func(*Host){twoNodes, func(h *Host) { h.BindMemory = true }}},
	"numa-one": {instance(onMemoryNodes), []func(*Host){twoNodes, func(h *Host) {
		h.MemoryNodes = []int{1}
		h.CPUs = []HostCPU{{ID: 1, Node: 1, Core: 1}, {ID: 3, Node: 1, Core: 3}, {ID: 5, Node: 1, Core: 5}}
	}}},
	"no-hotplug": {vmi: instance(disksOn(vmi.DiskBusVirtio, vmi.DiskBusVirtio), interfaces(vmi.Interface{Name: "default"}), func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Devices.DisableHotplug = true
	})},
	"passthrough": {vmi: instance(processor(vmi.CPUModelPassthrough))},
	"machine-type": {vmi: instance(func(v *vmi.VirtualMachineInstance) {
		v.Spec.Architecture, v.Spec.Domain.Machine = "amd64", &vmi.Machine{Type: "pc-q35-7.1"}
	})},
	"firmware": {vmi: instance(func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Firmware = &vmi.Firmware{UUID: "5D307CA9B3EF428C886106E72D69F223", Serial: "SN-0042"}
	})},
	"bios-serial": {vmi: instance(func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Firmware = &vmi.Firmware{Bootloader: &vmi.Bootloader{BIOS: &vmi.BIOS{UseSerial: new(true)}}}
	})},
	"uefi":        {vmi: instance(uefi(vmi.EFI{SecureBoot: new(false)}))},
	"secure-boot": {vmi: instance(uefi(vmi.EFI{}))},
	"kernel-boot": {instance(func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Firmware = &vmi.Firmware{KernelBoot: &vmi.KernelBoot{KernelArgs: `console=ttyS0 a="b" <&>`,
			Container: &vmi.KernelBootContainer{Image: "example/kernel:1", KernelPath: "/boot/vmlinuz", InitrdPath: "/boot/initrd"}}}
	}), []func(*Host){func(h *Host) { h.Kernel = KernelFiles{Kernel: "/kernel/boot/vmlinuz", Initrd: "/kernel/boot/initrd"} }}},
	"tpm":            {vmi: instance(func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.TPM = &vmi.TPM{} })},
	"tpm-persistent": {vmi: instance(func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.TPM = &vmi.TPM{Persistent: new(true)} })},
	"rng":            {vmi: instance(func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.Rng = &vmi.Rng{} })},
	"panic-devices": {vmi: instance(func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Devices.PanicDevices = []vmi.PanicDevice{{}, {Model: new(vmi.PanicDeviceISA)}}
	})},
	"vsock":       {vmi: instance(disksOn(vmi.DiskBusVirtio), func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.AutoattachVSOCK = new(true) })},
	"console-log": {instance(), []func(*Host){func(h *Host) { h.ConsoleLog = "/private/console" }}},
	"buses":       {vmi: instance(disksOn(vmi.DiskBusVirtio, vmi.DiskBusSATA, vmi.DiskBusSCSI, vmi.DiskBusVirtio, vmi.DiskBusSCSI, ""))},
	"overlay":     {instance(disksOn(vmi.DiskBusVirtio)), []func(*Host){overlay}},
	"no-direct-io": {instance(disksOn(vmi.DiskBusVirtio)), []func(*Host){func(h *Host) {
		d := h.Disks["diska"]
		d.DirectIO = false
		h.Disks["diska"] = d
	}}},
	"block-device": {instance(disksOn(vmi.DiskBusVirtio)), []func(*Host){func(h *Host) {
		d := h.Disks["diska"]
		d.Device, d.Path = true, "/dev/diska"
		h.Disks["diska"] = d
	}}},
	"boot-order": {vmi: instance(disksOn(vmi.DiskBusVirtio, vmi.DiskBusSATA, vmi.DiskBusSCSI), func(v *vmi.VirtualMachineInstance) {
		for i, s := range []string{"SN-v", "SN-a", "SN-s"} {
			v.Spec.Domain.Devices.Disks[i].Serial = s
		}
		v.Spec.Domain.Devices.Disks[1].BootOrder = new(uint(1))
		v.Spec.Domain.Devices.Disks[0].BootOrder = new(uint(2))
	})},
	"user-network": {instance(interfaces(vmi.Interface{Name: "default"})), []func(*Host){func(h *Host) {
		h.Interfaces[0].Tap, h.Interfaces[0].Backend = "", network.BackendUser
	}}},
	"tcp-network": {instance(interfaces(vmi.Interface{Name: "default"})), []func(*Host){func(h *Host) {
		a := &h.Interfaces[0]
		a.Tap, a.Backend, a.Server = "", network.BackendTCP, netip.MustParseAddrPort("127.0.0.1:4321")
	}}},
	"interface": {instance(interfaces(vmi.Interface{Name: "default"}, vmi.Interface{Name: "old", Model: "e1000"})), []func(*Host){func(h *Host) {
		h.Interfaces[0].MTU = 1450
	}}},
	"interface-fields": {instance(interfaces(
		vmi.Interface{Name: "fast", BootOrder: new(uint(1))},
		vmi.Interface{Name: "unplugged", State: vmi.InterfaceDown, ACPIIndex: 7},
		vmi.Interface{Name: "gone", State: vmi.InterfaceAbsent},
	)), []func(*Host){func(h *Host) { h.Interfaces[0].Queues = 4 }}},
	"models": {vmi: instance(interfaces(vmi.Interface{Name: "a", Model: "virtio"}, vmi.Interface{Name: "b", Model: "e1000"}, vmi.Interface{Name: "c", Model: "e1000e"},
		vmi.Interface{Name: "d", Model: "ne2k_pci"}, vmi.Interface{Name: "e", Model: "pcnet"}, vmi.Interface{Name: "f", Model: "rtl8139"}))},
	"clock": {vmi: instance(func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Clock = &vmi.Clock{ClockOffset: vmi.ClockOffset{UTC: &vmi.ClockUTC{OffsetSeconds: new(3600)}}, Timer: &vmi.Timer{
			HPET: &vmi.HPETTimer{Enabled: new(false)}, KVM: &vmi.KVMTimer{}, PIT: &vmi.PITTimer{TickPolicy: vmi.TickPolicyDelay},
			RTC: &vmi.RTCTimer{TickPolicy: vmi.TickPolicyCatchup, Track: vmi.RTCTrackWall}, Hyperv: &vmi.HypervTimer{},
		}}
	})},
	"timezone": {vmi: instance(func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Clock = &vmi.Clock{ClockOffset: vmi.ClockOffset{Timezone: new("Europe/Rome")}}
	})},
	"windows":          {vmi: instance(windows)},
	"windows-emulated": {instance(windows), []func(*Host){emulated}},
	"hidden": {vmi: instance(func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Features = &vmi.Features{KVM: &vmi.FeatureKVM{Hidden: true}, HypervPassthrough: &vmi.HypervPassthrough{},
			PVSpinlock: &vmi.FeatureState{Enabled: new(false)}, ACPI: vmi.FeatureState{Enabled: new(false)}}
	})},
	"chassis": {vmi: instance(func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Chassis = &vmi.Chassis{Manufacturer: "Acme", Version: "2", Serial: "SN-7", Asset: "A-1", Sku: "S"}
	})},
	"no-graphics": {vmi: instance(func(v *vmi.VirtualMachineInstance) {
		d := &v.Spec.Domain.Devices
		d.AutoattachGraphicsDevice, d.AutoattachSerialConsole, d.AutoattachMemBalloon, d.AutoattachInputDevice = new(false), new(false), new(false), new(true)
	})},
	"optional-devices": {instance(optionalDevices), []func(*Host){emulated}},
	"transitional": {instance(disksOn(vmi.DiskBusVirtio, vmi.DiskBusSCSI, vmi.DiskBusVirtio), interfaces(vmi.Interface{Name: "default"}), func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Devices.UseVirtioTransitional, v.Spec.Domain.Devices.Rng = new(true), &vmi.Rng{}
	}), []func(*Host){emulated}},
	"root-complex": {instance(disksOn(vmi.DiskBusVirtio, vmi.DiskBusVirtio), interfaces(vmi.Interface{Name: "default"}, vmi.Interface{Name: "second", Model: "e1000"}), func(v *vmi.VirtualMachineInstance) {
		v.Annotations = map[string]string{vmi.RootComplexAnnotation: "true"}
	}), []func(*Host){emulated}},
	"pci-address": {instance(disksOn(vmi.DiskBusVirtio, vmi.DiskBusVirtio), interfaces(vmi.Interface{Name: "default", PciAddress: "0000:03:00.0", ACPIIndex: 7}), func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Devices.Disks[0].Disk.PciAddress = "0000:00:1d.0"
		v.Spec.Domain.Devices.Disks[1].Disk.PciAddress = "0000:0d:00.0"
	}), []func(*Host){emulated}},
	"many-disks":    {instance(disksOn(slices.Repeat([]vmi.DiskBus{vmi.DiskBusVirtio, vmi.DiskBusSATA}, 9)...)), []func(*Host){emulated}},
	"reboot-policy": {vmi: instance(func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.RebootPolicy = vmi.RebootPolicyTerminate })},
	"arm64": {instance(optionalDevices, disksOn(vmi.DiskBusVirtio, vmi.DiskBusSCSI), interfaces(vmi.Interface{Name: "default"}), architecture("arm64", "virt"),
		func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.TPM = &vmi.TPM{Persistent: new(true)} }),
		[]func(*Host){func(h *Host) { h.Arch = archARM }}},
	"arm64-emulated": {instance(disksOn(vmi.DiskBusVirtio), architecture("arm64", "")),
		[]func(*Host){emulated, func(h *Host) { h.Arch = archARM }}},
	"s390x": {instance(optionalDevices, disksOn(vmi.DiskBusVirtio, vmi.DiskBusSCSI), interfaces(vmi.Interface{Name: "default"}), architecture("s390x", "s390-ccw-virtio"),
		func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.UseVirtioTransitional = new(true) }),
		[]func(*Host){func(h *Host) { h.Arch, h.ConsoleLog = archS390X, "/private/console" }}},
	"sev":    {vmi: encrypted(vmi.SEV{})},
	"sev-es": {vmi: encrypted(vmi.SEV{Policy: &vmi.SEVPolicy{EncryptedState: new(true)}, Session: "U0VTU0lPTg==\nAAAA", DHCert: "Q0VSVA=="})},
	"s390-pv": {instance(optionalDevices, disksOn(vmi.DiskBusVirtio, vmi.DiskBusSCSI), interfaces(vmi.Interface{Name: "default"}), architecture("s390x", "s390-ccw-virtio"),
		func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.LaunchSecurity = &vmi.LaunchSecurity{} }),
		[]func(*Host){func(h *Host) { h.Arch = archS390X }}},
	"everything": {instance(disksOn(vmi.DiskBusVirtio, vmi.DiskBusSATA, vmi.DiskBusSCSI), interfaces(vmi.Interface{Name: "default", Model: "virtio"}), func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.CPU = &vmi.CPU{Cores: 2}
		v.Spec.Domain.Devices.Rng = &vmi.Rng{}
		v.Spec.Domain.Devices.Disks[0].BootOrder = new(uint(1))
	}), []func(*Host){emulated, overlay, func(h *Host) { h.ConsoleLog = "/private/console"; h.Interfaces[0].MTU = 1450 }}},
}

func TestADomainHasWhatIsInTheSpec(t *testing.T) {
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := Build(tt.vmi, host(tt.vmi, tt.host...))
			require.NoError(t, err)
			xml, err := d.Marshal()
			require.NoError(t, err)
			golden.Equal(t, filepath.Join("testdata", name+".xml"), []byte(xml+"\n"))
		})
	}
}

func TestADomainIsWhatLibvirtsSchemaAllows(t *testing.T) {
	xmllint := testenv.Program(t, "xmllint")
	schema := testenv.File(t, "/usr/share/libvirt/schemas/domain.rng")
	files, err := filepath.Glob("testdata/*.xml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	out, err := exec.Command(xmllint, append([]string{"--noout", "--relaxng", schema}, files...)...).CombinedOutput()
	require.NoError(t, err, string(out))
}

func TestADomainThatCannotBeBuiltHasAllFaultsInItsError(t *testing.T) {
	for name, tt := range map[string]struct {
		vmi     *vmi.VirtualMachineInstance
		host    []func(*Host)
		want    []string
		invalid bool
	}{
		"no KVM and no emulation": {instance(), []func(*Host){func(h *Host) { h.KVM = false }}, []string{"/dev/kvm", "useEmulation"}, true},
		"another architecture":    {instance(), []func(*Host){func(h *Host) { h.Arch = "ppc64le" }}, []string{"ppc64le"}, true},
		"another architecture, and a model by its name": {instance(processor("Haswell"), func(v *vmi.VirtualMachineInstance) { v.Spec.Architecture = "arm64" }),
			[]func(*Host){func(h *Host) { h.Arch = archX86 }}, []string{"spec.architecture: the guest is for arm64, and the guests of this host are for x86_64"}, true},
		"no memory": {instance(func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Memory = nil }), nil, []string{"spec.domain.memory.guest: the guest has 0 of memory"}, true},
		"devices that are not served": {instance(disksOn(vmi.DiskBusUSB), func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.Devices.Disks[0] = vmi.Disk{Name: "diska", LUN: &vmi.LunTarget{Reservation: true}}
		}),
			nil, []string{"spec.domain.devices.disks[0].lun.reservation: Forbidden: not served yet"}, true},
		"an initrd and no kernel": {instance(func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.Firmware = &vmi.Firmware{KernelBoot: &vmi.KernelBoot{Container: &vmi.KernelBootContainer{Image: "a", InitrdPath: "/initrd"}}}
		}), nil, []string{"spec.domain.firmware.kernelBoot.container.initrdPath: an initrd needs a kernel", "set kernelPath"}, true},
		"a kernel that was not looked for": {instance(func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.Firmware = &vmi.Firmware{KernelBoot: &vmi.KernelBoot{Container: &vmi.KernelBootContainer{Image: "a", KernelPath: "/vmlinuz"}}}
		}), nil, []string{"the files of the image are not known"}, false},
		"encrypted memory with emulation and the legacy interface": {instance(uefi(vmi.EFI{SecureBoot: new(false)}), func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.LaunchSecurity = &vmi.LaunchSecurity{SEV: &vmi.SEV{}}
			v.Spec.Domain.Devices.UseVirtioTransitional = new(true)
		}), []func(*Host){emulated}, []string{
			"spec.domain.launchSecurity: the guest is kept from its node by the processor, which needs KVM",
			"spec.domain.devices.useVirtioTransitional: the legacy interface of virtio reads memory that launchSecurity keeps from the node",
		}, true},
		"too few CPUs for itself": {instance(func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.CPU = &vmi.CPU{Cores: 2, DedicatedCPUPlacement: true}
		}), []func(*Host){func(h *Host) { h.CPUs = []HostCPU{{ID: 3}} }},
			[]string{"spec.domain.cpu.dedicatedCpuPlacement: the pod has 1 CPUs for itself and the guest needs 2"}, false},
		"memory nodes of the node that QEMU may not choose": {instance(onMemoryNodes), []func(*Host){twoNodes},
			[]string{"spec.domain.cpu.numa: the seccomp profile of the pod", "memory manager policy Static"}, false},
		"memory nodes without CPUs for itself": {instance(func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.CPU = &vmi.CPU{NUMA: &vmi.NUMA{GuestMappingPassthrough: &vmi.NUMAGuestMappingPassthrough{}}}
		}), nil, []string{"spec.domain.cpu.numa: the memory nodes of the node need dedicatedCpuPlacement"}, true},
		"more memory nodes than huge pages": {instance(onMemoryNodes, func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.Memory.Guest = new(resource.MustParse("2Mi"))
		}), []func(*Host){twoNodes}, []string{"the guest has 2 memory nodes"}, false},
		"devices of the node that the pod was not given": {instance(func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.Devices.GPUs = []vmi.GPU{{Name: "a", DeviceName: "x.org/a"}, {Name: "b", DeviceName: "x.org/a"}, {Name: "c", DeviceName: "x.org/c"}, {Name: "d", DeviceName: "x.org/d"}}
			v.Spec.Domain.Devices.HostDevices = []vmi.HostDevice{{Name: "e", DeviceName: "x.org/e"}}
		}), []func(*Host){func(h *Host) {
			h.HostDevices = map[string]string{"PCI_RESOURCE_X_ORG_A": "0000:01:00.0", "PCI_RESOURCE_X_ORG_D": "01:00.0", "MDEV_PCI_RESOURCE_X_ORG_E": "../x"}
		}}, []string{
			"spec.domain.devices.gpus[1]: device b: the device plugin gave the pod fewer devices of x.org/a than the VMI has",
			"spec.domain.devices.gpus[2]: device c: neither PCI_RESOURCE_X_ORG_C nor MDEV_PCI_RESOURCE_X_ORG_C is in the environment of the pod",
			`spec.domain.devices.gpus[3]: device d: "01:00.0" is no PCI address`,
			`spec.domain.devices.hostDevices[0]: device e: "../x" is no UUID of a mediated device`,
		}, false},
		"interfaces with the binding sriov in a pod without a function": {instance(passedThrough("red"), multus("red")), nil, []string{
			"spec.domain.devices.interfaces[0]: interface red: no variable PCIDEVICE_<resource> in the environment of the pod has a PCI address",
			"for the network red: give the NetworkAttachmentDefinition the annotation k8s.v1.cni.cncf.io/resourceName",
		}, false},
		"more interfaces with the binding sriov than functions": {instance(passedThrough("red", "blue"), multus("red", "blue")), []func(*Host){func(h *Host) {
			h.HostDevices = map[string]string{"PCIDEVICE_X_ORG_A": "0000:81:02.0"}
		}}, []string{"spec.domain.devices.interfaces[1]: interface blue: PCIDEVICE_X_ORG_A has fewer devices than the VMI has interfaces with the binding sriov"}, false},
		"functions of two resources": {instance(passedThrough("red", "blue"), multus("red", "blue")), []func(*Host){func(h *Host) {
			h.HostDevices = map[string]string{"PCIDEVICE_X_ORG_A": "0000:81:02.0", "PCIDEVICE_X_ORG_B": "0000:81:02.1"}
		}}, []string{"interface red: the pod has devices of several resources, PCIDEVICE_X_ORG_A and PCIDEVICE_X_ORG_B"}, false},
		"the resource of the network has no functions for guests": {instance(passedThrough("red"), multus("red")), []func(*Host){func(h *Host) {
			h.HostDevices = map[string]string{"PCIDEVICE_X_ORG_A": "0000:81:02.0", "KUBEVIRT_RESOURCE_NAME_red": "x.org/b"}
		}}, []string{"interface red: no variable PCIDEVICE_X_ORG_B with a PCI address is in the environment of the pod: the device plugin of x.org/b"}, false},
		"a function whose address is none": {instance(passedThrough("red", "blue"), multus("red", "blue")), []func(*Host){func(h *Host) {
			h.HostDevices = map[string]string{"PCIDEVICE_X_ORG_A": "0000:81:02.0,../x"}
		}}, []string{`interfaces[1]: device blue: "../x" is no PCI address`}, false},
		"no attachments": {instance(disksOn(""), interfaces(vmi.Interface{Name: "default"})),
			[]func(*Host){func(h *Host) { h.Disks, h.Interfaces = nil, nil }}, []string{"spec.domain.devices.disks[0]: disk diska has no attachment", "spec.domain.devices.interfaces[0]: interface default is not bound"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Build(tt.vmi, host(tt.vmi, tt.host...))
			for _, s := range tt.want {
				require.ErrorContains(t, err, s)
			}
			if tt.invalid {
				require.ErrorIs(t, err, vmi.ErrInvalid)
			} else {
				require.NotErrorIs(t, err, vmi.ErrInvalid)
			}
		})
	}
}

func TestMemoryComesFromTheRequestIfTheGuestsIsNotNamed(t *testing.T) {
	v := instance(func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Memory = nil
		v.Spec.Domain.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1024M")}
	})
	d, err := Build(v, host(v))
	require.NoError(t, err)
	require.Equal(t, &libvirtxml.DomainMemory{Value: 1024000000, Unit: "b"}, d.Memory)
}

func TestEveryInstanceHasAUUIDOfItsOwnThatStays(t *testing.T) {
	a, b := instance(), instance(func(v *vmi.VirtualMachineInstance) { v.UID = "another" })
	require.Equal(t, uuid(a), uuid(instance()))
	require.NotEqual(t, uuid(a), uuid(b))
	require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, uuid(a))
}

func TestSocketPathsFitIntoAnAddress(t *testing.T) {
	v := instance(func(v *vmi.VirtualMachineInstance) {
		v.Name, v.Namespace = strings.Repeat("n", 63), strings.Repeat("s", 63)
	})
	for _, p := range []string{SerialSocket(PrivateDir(v)), VNCSocket(PrivateDir(v)), filepath.Join(PrivateDir(v), agentSocket)} {
		require.LessOrEqual(t, len(p), 107)
	}
}

// FuzzBuild writes domains as XML and reads them again.
func FuzzBuild(f *testing.F) {
	f.Add("vm", "default", "uid", "root", "virtio", "SN-1", "/a/b", uint32(1), int64(128<<20), uint(1), true)
	f.Add("<&>", "]]>", "", "\"", "sata", " ", "", uint32(7), int64(1<<40), uint(0), false)
	f.Fuzz(func(t *testing.T, name, namespace, uid, disk, bus, serial, path string, cores uint32, memory int64, order uint, kvm bool) {
		v := &vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: types.UID(uid)}}
		v.Spec.Domain.Memory = &vmi.Memory{Guest: resource.NewQuantity(memory, resource.BinarySI)}
		v.Spec.Domain.CPU = &vmi.CPU{Cores: cores % 1024}
		v.Spec.Domain.Devices.Disks = []vmi.Disk{{Name: disk, Serial: serial, BootOrder: &order, Disk: &vmi.DiskTarget{Bus: vmi.DiskBus(bus)}}}
		v.Spec.Domain.Devices.Interfaces = []vmi.Interface{{Name: name, Model: vmi.InterfaceModel(bus)}}
		h := host(v, func(h *Host) { h.KVM, h.AllowEmulation, h.PrivateDir = kvm, true, path })
		d, err := Build(v, h)
		if err != nil {
			return
		}
		once, err := d.Marshal()
		require.NoError(t, err)
		var read libvirtxml.Domain
		require.NoError(t, read.Unmarshal(once))
		twice, err := read.Marshal()
		require.NoError(t, err)
		require.Equal(t, once, twice)
	})
}

func TestTheNameOfADomainIsTheNameOfAFile(t *testing.T) {
	t.Parallel()
	named := func(name string) string {
		return Name(&vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: strings.Repeat("n", 63), Name: name}})
	}
	require.Equal(t, "default_vm", Name(&vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "vm"}}))
	require.Equal(t, strings.Repeat("n", 63)+"_"+strings.Repeat("a", 136), named(strings.Repeat("a", 136)))
	long := named(strings.Repeat("a", 253))
	require.Len(t, long, 200)
	require.Equal(t, long, named(strings.Repeat("a", 253)))
	require.NotEqual(t, long, named(strings.Repeat("a", 252)))
}
