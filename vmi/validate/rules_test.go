package validate_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/validate"
)

// rule is a VMI as a user writes it, and the faults with defaults applied.
type rule struct {
	name   string
	spec   string
	limits validate.Limits
	want   []string
}

func TestRules(t *testing.T) {
	t.Parallel()
	for _, tables := range [][]rule{processorRules, securityRules, firmwareRules, storageRules, networkRules, deviceRules, podRules} {
		for _, tt := range tables {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				var s vmi.VirtualMachineInstanceSpec
				require.NoError(t, yaml.UnmarshalStrict([]byte(tt.spec), &s))
				var got []string
				for _, e := range validate.Spec(field.NewPath("spec"), defaults.Spec(&s, defaults.Profile{}), tt.limits) {
					got = append(got, e.Field+": "+string(e.Type))
				}
				require.Equal(t, tt.want, got)
			})
		}
	}
}

var everything = validate.Limits{Features: validate.Features{
	HostDisk: true, HostDevices: true, PersistentReservation: true, PortRanges: true, VSOCK: true,
	SEV: true, TDX: true,
}}

// nothing has every feature off.
var nothing = validate.Limits{Features: validate.Features{
	NoEmptyCDRom: true, NoRebootPolicy: true, NoPasst: true, NoDecentralizedMigration: true, NoGPUsWithDRA: true, NoHostDevicesWithDRA: true,
}}

var securityRules = []rule{
	{"SEV with secure boot", `domain: {features: {smm: {}}, firmware: {bootloader: {efi: {}}}, launchSecurity: {sev: {}}}`, everything, []string{"spec.launchSecurity: FieldValueInvalid"}},
	{"SEV-ES", `domain: {memory: {guest: 2Gi}, firmware: {bootloader: {efi: {secureBoot: false}}}, launchSecurity: {sev: {policy: {encryptedState: true}}}}`, everything, nil},
	{"SEV that is switched off", `domain: {firmware: {bootloader: {efi: {secureBoot: false}}}, launchSecurity: {sev: {}}}`, validate.Limits{}, []string{"spec.launchSecurity: FieldValueInvalid"}},
	{"SEV with variables that are kept, and a start from the network", `{domain: {firmware: {bootloader: {efi: {secureBoot: false, persistent: true}}}, launchSecurity: {sev: {}}, devices: {interfaces: [{name: a, masquerade: {}, bootOrder: 1}]}}, networks: [{name: a, pod: {}}]}`, everything,
		[]string{"spec.launchSecurity: FieldValueInvalid", "spec.launchSecurity: FieldValueInvalid"}},
	{"two kinds of encrypted memory", `domain: {firmware: {bootloader: {efi: {secureBoot: false}}}, launchSecurity: {sev: {}, snp: {}}}`, everything, []string{"spec.launchSecurity: FieldValueForbidden"}},
	{"SNP with BIOS", `domain: {launchSecurity: {snp: {}}}`, everything, []string{"spec.launchSecurity: FieldValueInvalid"}},
	{"encrypted memory on arm64", `{architecture: arm64, domain: {launchSecurity: {sev: {}}}}`, everything, []string{"spec.launchSecurity: FieldValueInvalid"}},
	{"SEV on s390x", `{architecture: s390x, domain: {launchSecurity: {sev: {}}}}`, everything, []string{"spec.launchSecurity: FieldValueInvalid"}},
}

var processorRules = []rule{
	{"three threads of a whole CPU", `domain: {cpu: {dedicatedCpuPlacement: true, cores: 1, sockets: 1, threads: 3}}`, validate.Limits{}, []string{"spec.domain.cpu.dedicatedCpuPlacement: FieldValueInvalid"}},
	{"a thread for the emulator of a VMI without whole CPUs", `domain: {cpu: {isolateEmulatorThread: true}}`, validate.Limits{}, []string{"spec.domain.cpu.isolateEmulatorThread: FieldValueInvalid"}},
	{"whole CPUs that agree with the processors", `domain: {cpu: {dedicatedCpuPlacement: true, cores: 4}, resources: {limits: {cpu: "4"}}}`, validate.Limits{}, nil},
	{"memory nodes without huge pages", `domain: {cpu: {dedicatedCpuPlacement: true, numa: {guestMappingPassthrough: {}}}}`, validate.Limits{}, []string{"spec.domain.cpu.numa.guestMappingPassthrough: FieldValueInvalid"}},
	{"a request that rounds up to the limit", `domain: {cpu: {dedicatedCpuPlacement: true}, resources: {requests: {cpu: 1500m}, limits: {cpu: "2"}}}`, validate.Limits{}, []string{"spec.domain.resources.requests.cpu: FieldValueInvalid"}},
	{"a request that does not fill its pages", `domain: {memory: {guest: 64Mi, hugepages: {pageSize: 2Mi}}, resources: {requests: {memory: 63Mi}}}`, validate.Limits{}, []string{"spec.domain.resources.requests.memory: FieldValueInvalid"}},
	{"a guest that does not fill its pages", `domain: {memory: {guest: 63Mi, hugepages: {pageSize: 2Mi}}, resources: {requests: {memory: 64Mi}}}`, validate.Limits{}, []string{"spec.domain.memory.guest: FieldValueInvalid"}},
	{"pages of a size that none has", `domain: {memory: {guest: 6Mi, hugepages: {pageSize: 3Mi}}}`, validate.Limits{}, []string{"spec.domain.memory.hugepages.pageSize: FieldValueInvalid"}},
	{"a limit that does not fill pages", `domain: {memory: {hugepages: {pageSize: 2Mi}}, resources: {limits: {memory: 63Mi}}}`, validate.Limits{}, []string{"spec.domain.resources.limits.memory: FieldValueInvalid"}},
	{"a guest that does not fill its pages, and asks for nothing", `domain: {memory: {guest: 63Mi, hugepages: {pageSize: 2Mi}}}`, validate.Limits{}, []string{"spec.domain.memory.guest: FieldValueInvalid"}},
	{"a guest that starts with more than it may have", `domain: {memory: {guest: 2Gi, maxGuest: 1Gi}}`, validate.Limits{}, []string{"spec.domain.memory.guest: FieldValueInvalid"}},
	{"as much memory as Kubernetes adds up", `domain: {memory: {guest: 1Ei}}`, validate.Limits{}, nil},
	{"a negative request beside a limit that is too large", `domain: {resources: {requests: {cpu: -3}, limits: {cpu: 900E}}}`, validate.Limits{}, []string{"spec.domain.resources.limits.cpu: FieldValueInvalid", "spec.domain.resources.requests.cpu: FieldValueInvalid"}},
	{"a network with zeros before its numbers", `{networks: [{name: a, pod: {vmNetworkCIDR: 10.10.010.0/24}}], domain: {devices: {interfaces: [{name: a, masquerade: {}}]}}}`, validate.Limits{}, nil},
	{"the network of all addresses", `{networks: [{name: a, pod: {vmNetworkCIDR: 0.0.0.0/0}}], domain: {devices: {interfaces: [{name: a, masquerade: {}}]}}}`, validate.Limits{}, []string{"spec.networks[0].pod.vmNetworkCIDR: FieldValueInvalid"}},
	{"networks of loopback and multicast", `{networks: [{name: a, pod: {vmNetworkCIDR: 127.1.0.0/16, vmIPv6NetworkCIDR: "ff02::/64"}}], domain: {devices: {interfaces: [{name: a, masquerade: {}}]}}}`, validate.Limits{}, []string{"spec.networks[0].pod.vmNetworkCIDR: FieldValueInvalid", "spec.networks[0].pod.vmIPv6NetworkCIDR: FieldValueInvalid"}},
	{"a definition of no name", `{networks: [{name: a, multus: {networkName: a/b/c}}], domain: {devices: {interfaces: [{name: a, bridge: {}}]}}}`, validate.Limits{}, []string{"spec.networks[0].multus.networkName: FieldValueInvalid"}},
	{"a device of the node whose name is a path", `domain: {devices: {gpus: [{name: ../x, deviceName: example.com/gpu}]}}`, validate.Limits{}, []string{"spec.domain.devices.gpus[0].name: FieldValueInvalid"}},
	{"a device that the cluster does not permit", `domain: {devices: {gpus: [{name: a, deviceName: example.com/gpu}]}}`, validate.Limits{Devices: map[string]bool{}}, []string{"spec.domain.devices.gpus[0].deviceName: FieldValueForbidden"}},
	{"a resource that no device plugin has", `domain: {resources: {limits: {x: 1}}}`, validate.Limits{}, []string{"spec.domain.resources.limits[x]: FieldValueInvalid"}},
	{"a resource that is asked for without a limit", `domain: {resources: {requests: {example.com/x: 1}}}`, validate.Limits{}, []string{"spec.domain.resources.limits[example.com/x]: FieldValueRequired"}},
	{"an empty drive on the bus usb", `domain: {devices: {disks: [{name: a, cdrom: {bus: usb}}]}}`, validate.Limits{}, []string{"spec.domain.devices.disks[0].cdrom.bus: FieldValueInvalid"}},
	{"a container disk that is shareable", `{domain: {devices: {disks: [{name: a, shareable: true, disk: {bus: virtio}}]}}, volumes: [{name: a, containerDisk: {image: a}}]}`, validate.Limits{}, []string{"spec.domain.devices.disks[0].shareable: FieldValueInvalid"}},
	{"a claim that is shareable, with a cache", `{domain: {devices: {disks: [{name: a, shareable: true, cache: writeback, disk: {bus: virtio}}]}}, volumes: [{name: a, persistentVolumeClaim: {claimName: a}}]}`, validate.Limits{}, []string{"spec.domain.devices.disks[0].cache: FieldValueInvalid"}},
	{"native I/O with a cache", `{domain: {devices: {disks: [{name: a, io: native, cache: writeback, disk: {bus: virtio}}]}}, volumes: [{name: a, emptyDisk: {capacity: 1Gi}}]}`, validate.Limits{}, []string{"spec.domain.devices.disks[0].io: FieldValueInvalid"}},
	{"a policy that is none", `domain: {cpu: {features: [{name: vmx, policy: maybe}]}}`, validate.Limits{}, []string{"spec.domain.cpu.features[0].policy: FieldValueNotSupported"}},
	{"threads on arm64", `{architecture: arm64, domain: {cpu: {threads: 2, cores: 1, sockets: 1}}}`, validate.Limits{}, nil},
	{"a model on arm64", `{architecture: arm64, domain: {cpu: {model: host-model}}}`, validate.Limits{}, []string{"spec.domain.cpu.model: FieldValueNotSupported"}},
	{"as many processors as an interrupt controller can address", `domain: {cpu: {cores: 255}}`, validate.Limits{}, nil},
	{"one processor more", `domain: {cpu: {sockets: 128, threads: 2}}`, validate.Limits{}, []string{"spec.domain.cpu: FieldValueInvalid"}},
	{"processors beyond the cluster's limit", `domain: {cpu: {cores: 9}}`, validate.Limits{MaxVCPUs: 8}, []string{"spec.domain.cpu: FieldValueInvalid"}},
	{"an architecture that is none", `architecture: vax`, validate.Limits{}, []string{"spec.architecture: FieldValueInvalid"}},
	{"huge pages without a size", `domain: {memory: {guest: 64Mi, hugepages: {pageSize: "0"}}}`, validate.Limits{}, []string{"spec.domain.memory.hugepages.pageSize: FieldValueInvalid"}},
	{"a guest of one huge page that is too small", `domain: {memory: {hugepages: {pageSize: 1k}}}`, validate.Limits{}, []string{"spec.domain.memory.hugepages.pageSize: FieldValueInvalid"}},
	{"a guest whose limit is too small", `domain: {resources: {limits: {memory: 1k}}}`, validate.Limits{}, []string{"spec.domain.resources.limits.memory: FieldValueInvalid"}},
	{"a guest above its limit where memory is never added", `domain: {memory: {guest: 2Gi}, resources: {requests: {memory: 8Mi}, limits: {memory: 1Gi}}}`, validate.Limits{NoLiveUpdate: true}, []string{"spec.domain.memory.guest: FieldValueInvalid"}},
}

var firmwareRules = []rule{
	{"BIOS on arm64", `{architecture: arm64, domain: {firmware: {bootloader: {bios: {}}}}}`, validate.Limits{}, []string{"spec.domain.firmware.bootloader.bios: FieldValueNotSupported"}},
	{"secure boot on arm64", `{architecture: arm64, domain: {firmware: {bootloader: {efi: {secureBoot: true}}}}}`, validate.Limits{}, []string{"spec.domain.firmware.bootloader.efi.secureBoot: FieldValueInvalid"}},
	{"UEFI on arm64, without SMM", `{architecture: arm64, domain: {firmware: {bootloader: {efi: {secureBoot: false}}}}}`, validate.Limits{}, nil},
	{"all that only x86 has, on arm64", `{architecture: arm64, domain: {clock: {utc: {}, timer: {hpet: {}, hyperv: {}, kvm: {}, pit: {}, rtc: {}}},
		features: {acpi: {}, apic: {}, hyperv: {relaxed: {}}, kvm: {}, pvspinlock: {}, smm: {}}, firmware: {bootloader: {bios: {}}}, cpu: {model: Haswell},
		devices: {panicDevices: [{model: isa}, {model: pvpanic}, {}], sound: {name: a}, video: {type: vga}, watchdog: {name: a, i6300esb: {}}, disks: [{name: a, cdrom: {bus: sata}}]}}}`, validate.Limits{}, []string{
		"spec.domain.cpu.model: FieldValueNotSupported", "spec.domain.firmware.bootloader.bios: FieldValueNotSupported",
		"spec.domain.features.apic: FieldValueInvalid", "spec.domain.features.hyperv: FieldValueInvalid", "spec.domain.features.kvm: FieldValueInvalid",
		"spec.domain.features.pvspinlock: FieldValueInvalid", "spec.domain.features.smm: FieldValueInvalid",
		"spec.domain.clock.timer.hpet: FieldValueInvalid", "spec.domain.clock.timer.hyperv: FieldValueInvalid", "spec.domain.clock.timer.kvm: FieldValueInvalid",
		"spec.domain.clock.timer.pit: FieldValueInvalid", "spec.domain.clock.timer.rtc: FieldValueInvalid",
		"spec.domain.devices.disks[0].cdrom.bus: FieldValueNotSupported", "spec.domain.devices.watchdog: FieldValueNotSupported", "spec.domain.devices.sound: FieldValueInvalid",
		"spec.domain.devices.panicDevices[0].model: FieldValueInvalid", "spec.domain.devices.video.type: FieldValueNotSupported",
	}},
	{"a panic device of arm64 on amd64", `domain: {devices: {panicDevices: [{model: pvpanic}]}}`, validate.Limits{}, []string{"spec.domain.devices.panicDevices[0].model: FieldValueInvalid"}},
	{"secure boot on amd64, without SMM", `domain: {firmware: {bootloader: {efi: {secureBoot: true}}}}`, validate.Limits{}, []string{"spec.domain: FieldValueInvalid"}},
	{"a serial number and a UUID that are none", `domain: {firmware: {serial: a b, uuid: x}}`, validate.Limits{}, []string{"spec.domain.firmware.serial: FieldValueInvalid", "spec.domain.firmware.uuid: FieldValueInvalid"}},
	{"arguments without a kernel", `domain: {firmware: {kernelBoot: {kernelArgs: quiet}}}`, validate.Limits{}, []string{"spec.domain.firmware.kernelBoot.kernelArgs: FieldValueInvalid"}},
	{"a kernel that is nowhere", `domain: {firmware: {kernelBoot: {container: {image: ""}}}}`, validate.Limits{}, []string{"spec.domain.firmware.kernelBoot.container.image: FieldValueRequired", "spec.domain.firmware.kernelBoot.container: FieldValueRequired"}},
	{"paths that lead out of the image", `domain: {firmware: {kernelBoot: {container: {image: a, kernelPath: /boot/../../etc, initrdPath: boot/initrd}}}}`, validate.Limits{},
		[]string{"spec.domain.firmware.kernelBoot.container.kernelPath: FieldValueInvalid", "spec.domain.firmware.kernelBoot.container.initrdPath: FieldValueInvalid"}},
	{"nodes of another architecture", `{nodeSelector: {kubernetes.io/arch: arm64}, domain: {}}`, validate.Limits{}, []string{"spec.nodeSelector[kubernetes.io/arch]: FieldValueInvalid"}},
	{"nodes of the VMI's architecture", `{architecture: arm64, nodeSelector: {kubernetes.io/arch: arm64}, domain: {}}`, validate.Limits{}, nil},
	{"a machine type that is not allowed any more", `domain: {machine: {type: q35}}`, validate.Limits{MachineTypes: map[string][]string{"amd64": {"pc-q35-9.*"}}, NoBridgeOnPodNetwork: true}.Existing(), nil},
	{"a machine type that the cluster does not allow", `domain: {machine: {type: q35}}`, validate.Limits{MachineTypes: map[string][]string{"amd64": {"pc-q35-9.*"}}}, []string{"spec.domain.machine.type: FieldValueInvalid"}},
	{"features of Windows bring what they build on", `domain: {features: {hyperv: {synictimer: {}, evmcs: {}}}}`, validate.Limits{}, nil},
	{"features of Windows without what they build on", `domain: {features: {hyperv: {synictimer: {}, synic: {enabled: false}, ipi: {}, vpindex: {enabled: false}}}}`, validate.Limits{},
		[]string{"spec.domain.features.hyperv.ipi: FieldValueInvalid", "spec.domain.features.hyperv.synictimer: FieldValueInvalid"}},
	{"guests of guests that cannot be", `domain: {cpu: {features: [{name: vmx, policy: forbid}]}, features: {hyperv: {evmcs: {}}}}`, validate.Limits{}, []string{"spec.domain.cpu.features[0].policy: FieldValueInvalid"}},
}

const pvc = `, volumes: [{name: a, persistentVolumeClaim: {claimName: a}}]}`

var storageRules = []rule{
	{"the bus of old", `{domain: {devices: {disks: [{name: a, disk: {bus: ide}}]}}` + pvc, validate.Limits{}, []string{"spec.domain.devices.disks[0].disk.bus: FieldValueInvalid"}},
	{"a drive on virtio", `{domain: {devices: {disks: [{name: a, cdrom: {bus: virtio}}]}}` + pvc, validate.Limits{}, []string{"spec.domain.devices.disks[0].cdrom.bus: FieldValueInvalid"}},
	{"a disk on SATA that is read only", `{domain: {devices: {disks: [{name: a, disk: {bus: sata, readonly: true}}]}}` + pvc, validate.Limits{}, []string{"spec.domain.devices.disks[0].disk.bus: FieldValueInvalid"}},
	{"a disk without a bus that is read only", `{domain: {devices: {disks: [{name: a, disk: {readonly: true}}]}}` + pvc, validate.Limits{}, nil},
	{"an address off the PCI bus", `{domain: {devices: {disks: [{name: a, disk: {bus: scsi, pciAddress: "0000:81:01.0"}}]}}` + pvc, validate.Limits{}, []string{"spec.domain.devices.disks.domain.devices.disks.disk[0].pciAddress: FieldValueInvalid"}},
	{"an address without a bus", `{domain: {devices: {disks: [{name: a, disk: {pciAddress: "0000:81:01.0"}}]}}` + pvc, validate.Limits{}, nil},
	{"a thread off virtio", `{domain: {devices: {disks: [{name: a, dedicatedIOThread: true, disk: {bus: sata}}]}}` + pvc, validate.Limits{}, []string{"spec.domain.devices.disks.domain.devices.disks[0]: FieldValueNotSupported"}},
	{"words that are none", `{domain: {devices: {disks: [{name: a, cache: x, io: x, errorPolicy: x, serial: "x x"}]}}` + pvc, validate.Limits{}, []string{
		"spec.domain.devices.disks[0].serial: FieldValueInvalid", "spec.domain.devices.disks[0].cache: FieldValueInvalid",
		"spec.domain.devices.disks.domain.devices.disks[0].io: FieldValueNotSupported", "spec.domain.devices.disks[0].errorPolicy: FieldValueInvalid"}},
	{"blocks in two ways", `{domain: {devices: {disks: [{name: a, blockSize: {custom: {logical: 512, physical: 512}, matchVolume: {}}}]}}` + pvc, validate.Limits{}, []string{"spec.domain.devices.disks[0].blockSize: FieldValueInvalid"}},
	{"blocks in the wrong order", `{domain: {devices: {disks: [{name: a, blockSize: {custom: {logical: 4096, physical: 512}}}]}}` + pvc, validate.Limits{}, []string{"spec.domain.devices.disks[0].blockSize.custom.logical: FieldValueInvalid"}},
	{"large blocks on SATA", `{domain: {devices: {disks: [{name: a, blockSize: {custom: {logical: 4096, physical: 4096}}}]}}` + pvc, validate.Limits{}, []string{"spec.domain.devices.disks[0].blockSize.custom.logical: FieldValueInvalid"}},
	{"blocks of odd sizes", `{domain: {devices: {disks: [{name: a, disk: {bus: virtio}, blockSize: {custom: {logical: 513, physical: 4194304}}}]}}` + pvc, validate.Limits{},
		[]string{"spec.domain.devices.disks[0].blockSize.custom.logical: FieldValueInvalid", "spec.domain.devices.disks[0].blockSize.custom.physical: FieldValueInvalid"}},
	{"pieces that are no blocks", `{domain: {devices: {disks: [{name: a, blockSize: {custom: {logical: 512, physical: 512, discardGranularity: 700}}}]}}` + pvc, validate.Limits{}, []string{"spec.domain.devices.disks[0].blockSize.custom.discardGranularity: FieldValueInvalid"}},
	{"blocks that are wrong in all ways", `{domain: {devices: {disks: [{name: a, disk: {bus: sata}, blockSize: {custom: {logical: 700, physical: 900, discardGranularity: 701}}}]}}` + pvc, validate.Limits{}, []string{
		"spec.domain.devices.disks[0].blockSize.custom.logical: FieldValueInvalid", "spec.domain.devices.disks[0].blockSize.custom.physical: FieldValueInvalid",
		"spec.domain.devices.disks[0].blockSize.custom.logical: FieldValueInvalid", "spec.domain.devices.disks[0].blockSize.custom.discardGranularity: FieldValueInvalid"}},
	{"a reservation has the bus that it needs", `{domain: {devices: {disks: [{name: a, lun: {reservation: true}}]}}` + pvc, everything, nil},
	{"a lun on a bus without SCSI commands", `{domain: {devices: {disks: [{name: a, lun: {bus: sata}}]}}` + pvc, validate.Limits{}, []string{"spec.domain.devices.disks[0].lun.bus: FieldValueInvalid"}},
	{"a lun on scsi", `{domain: {devices: {disks: [{name: a, lun: {bus: scsi}}]}}` + pvc, validate.Limits{}, nil},
	{"a reservation on virtio", `{domain: {devices: {disks: [{name: a, lun: {bus: virtio, reservation: true}}]}}` + pvc, everything, []string{"spec.domain.devices.disks[0].lun.bus: FieldValueInvalid"}},
	{"SATA on arm64", `{architecture: arm64, domain: {devices: {disks: [{name: a, disk: {bus: sata}}]}}` + pvc, validate.Limits{}, []string{"spec.domain.devices.disks[0].disk.bus: FieldValueNotSupported"}},
	{"all kinds of disks on arm64", `{architecture: arm64, domain: {devices: {disks: [{name: a, cdrom: {}}]}}` + pvc, validate.Limits{}, nil},
	{"a host disk that is switched off", `volumes: [{name: a, hostDisk: {path: /a, type: Disk}}]`, validate.Limits{}, []string{"spec.volumes[0]: FieldValueInvalid"}},
	{"a host disk that is wrong", `volumes: [{name: a, hostDisk: {path: "", type: Disk, capacity: 1Gi}}, {name: b, hostDisk: {path: /a, type: x}}]`, everything,
		[]string{"spec.volumes[0].hostDisk.path: FieldValueNotFound", "spec.volumes[0].hostDisk.capacity: FieldValueInvalid", "spec.volumes[1].hostDisk.type: FieldValueInvalid"}},
	{"volumes that name nothing", `volumes: [{name: a, configMap: {}}, {name: b, secret: {}}, {name: c, serviceAccount: {}}, {name: d, dataVolume: {name: ""}}, {name: e, ephemeral: {}}, {name: f, sysprep: {}}]`, validate.Limits{}, []string{
		"spec.volumes[0].configMap.name: FieldValueInvalid", "spec.volumes[1].secret.secretName: FieldValueInvalid", "spec.volumes[2].serviceAccount.serviceAccountName: FieldValueInvalid",
		"spec.volumes[3].name: FieldValueRequired", "spec.volumes[4].ephemeral.persistentVolumeClaim: FieldValueRequired", "spec.volumes[5].sysprep: FieldValueInvalid"}},
	{"two accounts", `volumes: [{name: a, serviceAccount: {serviceAccountName: a}}, {name: b, serviceAccount: {serviceAccountName: b}}]`, validate.Limits{}, []string{"spec.volumes: FieldValueInvalid"}},
	{"a file system of a claim", `{domain: {devices: {filesystems: [{name: a, virtiofs: {}}]}}` + pvc, nothing, nil},
	{"a file system of a container disk", `{domain: {devices: {filesystems: [{name: a, virtiofs: {}}]}}, volumes: [{name: a, containerDisk: {image: a}}]}`, nothing, []string{"spec.domain.devices.filesystems[0].name: FieldValueInvalid"}},
	{"a file system with a name that guests cannot mount", `{domain: {devices: {filesystems: [{name: a12345678901234567890123456789012345b, virtiofs: {}}]}}, volumes: [{name: a12345678901234567890123456789012345b, configMap: {name: a}}]}`, nothing, []string{"spec.domain.devices.filesystems[0].name: FieldValueTooLong"}},
	{"a file system twice", `{domain: {devices: {filesystems: [{name: a, virtiofs: {}}, {name: a, virtiofs: {}}]}}, volumes: [{name: a, configMap: {name: a}}]}`, nothing, []string{"spec.domain.devices.filesystems[1].name: FieldValueDuplicate"}},
	{"a file system of a ConfigMap", `{domain: {devices: {filesystems: [{name: a, virtiofs: {}}]}}, volumes: [{name: a, configMap: {name: a}}]}`, nothing, nil},
	{"an empty drive", `domain: {devices: {disks: [{name: a, cdrom: {}}]}}`, validate.Limits{}, nil},
	{"an empty drive that is switched off", `domain: {devices: {disks: [{name: a, cdrom: {}}]}}`, nothing, []string{"spec.domain.devices.disks[0].name: FieldValueInvalid"}},
	{"an error policy that is empty", `{domain: {devices: {disks: [{name: a, errorPolicy: ""}]}}` + pvc, validate.Limits{}, []string{"spec.domain.devices.disks[0].errorPolicy: FieldValueInvalid"}},
	{"an error policy that is known", `{domain: {devices: {disks: [{name: a, errorPolicy: report}]}}` + pvc, validate.Limits{}, nil},
	{"a file system of nothing", `domain: {devices: {filesystems: [{name: a, virtiofs: {}}]}}`, everything, []string{"spec.domain.devices.filesystems[0].name: FieldValueInvalid"}},
}

const onPod = `, networks: [{name: a, pod: {}}]}`

var networkRules = []rule{
	{"a bridge that is switched off", `{domain: {devices: {interfaces: [{name: a, bridge: {}}]}}` + onPod, validate.Limits{NoBridgeOnPodNetwork: true}, []string{"spec.domain.devices.interfaces[0].name: FieldValueInvalid"}},
	{"masquerade off the pod network", `{domain: {devices: {interfaces: [{name: a, masquerade: {}}]}}, networks: [{name: a, multus: {networkName: b}}]}`, validate.Limits{}, []string{"spec.domain.devices.interfaces[0].name: FieldValueInvalid"}},
	{"a plugin beside a binding", `{domain: {devices: {interfaces: [{name: a, bridge: {}, binding: {name: x}}]}}` + onPod, validate.Limits{}, []string{"spec.domain.devices.interfaces[0].binding: FieldValueInvalid"}},
	{"bindings of old", `{domain: {devices: {interfaces: [{name: a, slirp: {}}]}}` + onPod, validate.Limits{}, []string{"spec.domain.devices.interfaces[0].slirp: FieldValueInvalid"}},
	{"a network without a name", `{domain: {devices: {interfaces: [{name: a, bridge: {}}]}}, networks: [{name: a, multus: {networkName: ""}}]}`, validate.Limits{}, []string{"spec.networks[0]: FieldValueRequired"}},
	{"the default network taken away", `{domain: {devices: {interfaces: [{name: a, bridge: {}, state: absent}]}}` + onPod, validate.Limits{}, []string{"spec.domain.devices.interfaces[0].state: FieldValueInvalid"}},
	{"a state that is none", `{domain: {devices: {interfaces: [{name: a, bridge: {}, state: x}]}}` + onPod, validate.Limits{}, []string{"spec.domain.devices.interfaces[0].state: FieldValueInvalid"}},
	{"ports in two ways", `{domain: {devices: {interfaces: [{name: a, masquerade: {}, ports: [{port: 1}], portRanges: [{protocol: TCP, start: 1, end: 2}]}]}}` + onPod, everything, []string{"spec.domain.devices.interfaces[0].name: FieldValueInvalid"}},
	{"ranges of one port each that meet in no protocol", `{domain: {devices: {interfaces: [{name: a, masquerade: {}, portRanges: [{protocol: TCP, start: 1, end: 1}, {protocol: UDP, start: 1, end: 1}]}]}}` + onPod, everything, nil},
	{"a range that ends before it starts", `{domain: {devices: {interfaces: [{name: a, masquerade: {}, portRanges: [{protocol: TCP, start: 2, end: 1}]}]}}` + onPod, everything, []string{"spec.domain.devices.interfaces[0].portRanges[0].start: FieldValueInvalid"}},
	{"ranges of ports that are switched off", `{domain: {devices: {interfaces: [{name: a, masquerade: {}, portRanges: [{protocol: TCP, start: 1, end: 2}]}]}}` + onPod, validate.Limits{}, []string{"spec.domain.devices.interfaces[0].portRanges: FieldValueInvalid"}},
	{"the passt binding", `{domain: {devices: {interfaces: [{name: a, passtBinding: {}}]}}` + onPod, validate.Limits{}, nil},
	{"the passt binding that is switched off", `{domain: {devices: {interfaces: [{name: a, passtBinding: {}}]}}` + onPod, nothing, []string{"spec.domain.devices.interfaces[0].name: FieldValueInvalid"}},
	{"ports off the pod network, which are only read", `{domain: {devices: {interfaces: [{name: a, bridge: {}, ports: [{name: test}]}]}}, networks: [{name: a, multus: {networkName: b}}]}`, validate.Limits{}, nil},
	{"ports of a masquerade off the pod network", `{domain: {devices: {interfaces: [{name: a, masquerade: {}, ports: [{name: test}]}]}}, networks: [{name: a, multus: {networkName: b}}]}`, validate.Limits{}, []string{"spec.domain.devices.interfaces[0].name: FieldValueInvalid"}},
	{"passt off the pod network", `{domain: {devices: {interfaces: [{name: a, passtBinding: {}}]}}, networks: [{name: a, multus: {networkName: b}}]}`, everything, []string{"spec.domain.devices.interfaces[0].name: FieldValueInvalid"}},
	{"masquerade on a network without a source", `{domain: {devices: {interfaces: [{name: a, masquerade: {}}]}}, networks: [{name: a}]}`, validate.Limits{}, []string{"spec.networks[0]: FieldValueRequired", "spec.domain.devices.interfaces[0].name: FieldValueInvalid"}},
	{"no order of an interface", `{domain: {devices: {interfaces: [{name: a, bridge: {}}, {name: b, bridge: {}, bootOrder: 0}]}}, networks: [{name: a, pod: {}}, {name: b, multus: {networkName: b}}]}`, validate.Limits{}, []string{"spec[1].bootOrder: FieldValueInvalid"}},
	{"no order of a disk", `{domain: {devices: {disks: [{name: a, bootOrder: 0}]}}` + pvc, validate.Limits{}, []string{"spec.domain.devices.disks[0].bootOrder: FieldValueInvalid"}},
	{"private options that are none", `{domain: {devices: {interfaces: [{name: a, masquerade: {}, dhcpOptions: {privateOptions: [{option: 1, value: a}, {option: 240, value: a}, {option: 240, value: b}]}}]}}` + onPod, validate.Limits{},
		[]string{"spec: FieldValueInvalid", "spec: FieldValueInvalid"}},
	{"one order for a disk and an interface", `{domain: {devices: {disks: [{name: a, bootOrder: 1}], interfaces: [{name: a, bridge: {}, bootOrder: 1}]}}, networks: [{name: a, pod: {}}]` + pvc, validate.Limits{}, []string{"spec.domain.devices.interfaces[0].bootOrder: FieldValueInvalid"}},
	{"an address that is none", `{domain: {devices: {interfaces: [{name: a, bridge: {}, pciAddress: "1:2", acpiIndex: -1}]}}` + onPod, validate.Limits{},
		[]string{"spec.domain.devices.interfaces[0].pciAddress: FieldValueInvalid", "spec.domain.devices.interfaces[0].acpiIndex: FieldValueInvalid"}},
}

var deviceRules = []rule{
	{"a watchdog of another architecture", `domain: {devices: {watchdog: {name: a, diag288: {}}}}`, validate.Limits{}, []string{"spec.domain.devices.watchdog: FieldValueNotSupported"}},
	{"a watchdog on arm64", `{architecture: arm64, domain: {devices: {watchdog: {name: a, i6300esb: {}}}}}`, validate.Limits{}, []string{"spec.domain.devices.watchdog: FieldValueNotSupported"}},
	{"panic devices", `domain: {devices: {panicDevices: [{}, {model: isa}]}}`, validate.Limits{}, nil},
	{"a panic device of no known model", `domain: {devices: {panicDevices: [{model: x}]}}`, validate.Limits{}, []string{"spec.domain.devices.panicDevices[0].model: FieldValueInvalid"}},
	{"a panic device on s390x", `{architecture: s390x, domain: {devices: {panicDevices: [{model: isa}]}}}`, validate.Limits{}, []string{"spec.domain.devices.panicDevices: FieldValueInvalid"}},
	{"sockets to the node", `domain: {devices: {autoattachVSOCK: true}}`, everything, nil},
	{"sockets to the node that are switched off", `domain: {devices: {autoattachVSOCK: true}}`, validate.Limits{}, []string{"spec.domain.devices.autoattachVSOCK: FieldValueInvalid"}},
	{"no sockets to the node", `domain: {devices: {autoattachVSOCK: false}}`, validate.Limits{}, nil},
	{"a watchdog that does nothing known", `domain: {devices: {watchdog: {name: a, i6300esb: {action: x}}}}`, validate.Limits{}, []string{"spec.domain.devices.watchdog.i6300esb.action: FieldValueInvalid"}},
	{"a graphics card of another architecture", `{architecture: s390x, domain: {devices: {video: {type: vga}}}}`, validate.Limits{}, []string{"spec.domain.devices.video.type: FieldValueNotSupported"}},
	{"a device without a name", `domain: {devices: {hostDevices: [{name: a}]}}`, everything, []string{"spec.domain.devices.hostDevices: FieldValueRequired"}},
	{"threads for nothing known", `domain: {ioThreadsPolicy: x}`, validate.Limits{}, []string{"spec.domain.ioThreadsPolicy: FieldValueInvalid"}},
	{"a reboot that ends the VMI", `domain: {rebootPolicy: Terminate}`, validate.Limits{}, nil},
	{"a reboot policy that is switched off", `domain: {rebootPolicy: Terminate}`, nothing, []string{"spec.domain.rebootPolicy: FieldValueInvalid"}},
	{"devices of claims", `{domain: {devices: {gpus: [{name: a, claimName: c, requestName: r}], hostDevices: [{name: b, claimName: c, requestName: s}]}}, resourceClaims: [{name: c, resourceClaimName: d}]}`, validate.Limits{}, nil},
	{"devices of claims that are switched off", `{domain: {devices: {gpus: [{name: a, claimName: c, requestName: r}], hostDevices: [{name: b, claimName: c, requestName: s}]}}, resourceClaims: [{name: c, resourceClaimName: d}]}`, nothing,
		[]string{"spec.domain.devices.gpus: FieldValueInvalid", "spec.domain.devices.hostDevices: FieldValueInvalid"}},
	{"devices of claims that are not there", `domain: {devices: {gpus: [{name: a, claimName: c, requestName: r}], hostDevices: [{name: b, claimName: d, requestName: s}]}}`, validate.Limits{}, []string{"spec.resourceClaims: FieldValueInvalid", "spec.resourceClaims: FieldValueInvalid"}},
	{"devices that are claimed in half", `{domain: {devices: {gpus: [{name: a, deviceName: x, claimName: c}, {name: b, requestName: r}]}}, resourceClaims: [{name: c, resourceClaimName: d}]}`, validate.Limits{},
		[]string{"spec.domain.devices.gpus[0]: FieldValueInvalid", "spec.domain.devices.gpus[0].requestName: FieldValueRequired", "spec.domain.devices.gpus[1].claimName: FieldValueRequired"}},
	{"claims that are none", `resourceClaims: [{name: A}, {name: c, resourceClaimName: d, resourceClaimTemplateName: e}, {name: c, resourceClaimName: d}]`, validate.Limits{},
		[]string{"spec.resourceClaims[0].name: FieldValueInvalid", "spec.resourceClaims[0]: FieldValueInvalid", "spec.resourceClaims[1]: FieldValueInvalid", "spec.resourceClaims[2].name: FieldValueDuplicate"}},
	{"policies of timers that they do not have", `domain: {clock: {timer: {hpet: {tickPolicy: x}, pit: {tickPolicy: merge}, rtc: {tickPolicy: discard, track: boot}}}}`, everything, []string{
		"spec.domain.clock.timer.hpet.tickPolicy: FieldValueInvalid", "spec.domain.clock.timer.pit.tickPolicy: FieldValueInvalid",
		"spec.domain.clock.timer.rtc.tickPolicy: FieldValueInvalid", "spec.domain.clock.timer.rtc.track: FieldValueInvalid"}},
	{"policies of timers that they have", `domain: {clock: {timezone: Europe/Rome, timer: {hpet: {tickPolicy: merge}, pit: {tickPolicy: discard}, rtc: {tickPolicy: catchup, track: wall}}}}`, everything, nil},
	{"a time zone that is the path of a file", `domain: {clock: {timezone: ../../dev/zero}}`, everything, []string{"spec.domain.clock.timezone: FieldValueInvalid"}},
	{"a sound card that there is not", `domain: {devices: {sound: {name: a, model: sb16}}}`, everything, []string{"spec.Sound: FieldValueInvalid"}},
	{"a sound card without a name", `domain: {devices: {sound: {model: ac97}}}`, everything, []string{"spec.Sound: FieldValueInvalid"}},
	{"a sound card on arm64", `{architecture: arm64, domain: {devices: {sound: {name: a}}}}`, everything, []string{"spec.domain.devices.sound: FieldValueInvalid"}},
	{"all of Hyper-V and some of it", `domain: {features: {hypervPassthrough: {}, hyperv: {relaxed: {}}}}`, everything, []string{"spec.domain.features.hyperv: FieldValueInvalid"}},
	{"a vendor of Hyper-V without a name", `domain: {features: {hyperv: {vendorid: {}}}}`, everything, []string{"spec.domain.features.hyperv.vendorid.vendorid: FieldValueRequired"}},
	{"a vendor of Hyper-V that is off and has no name", `domain: {features: {hyperv: {vendorid: {enabled: false}}}}`, everything, nil},
	{"a vendor of Hyper-V with a comma", `domain: {features: {hyperv: {vendorid: {vendorid: "a,b"}}}}`, everything, []string{"spec.domain.features.hyperv.vendorid.vendorid: FieldValueInvalid"}},
	{"a reboot that does nothing known", `domain: {rebootPolicy: x}`, everything, []string{"spec.domain.rebootPolicy: FieldValueInvalid"}},
}

var podRules = []rule{
	{"a paused VMI that is asked whether it lives", `{startStrategy: Paused, livenessProbe: {guestAgentPing: {}}}`, validate.Limits{}, []string{"spec.startStrategy: FieldValueInvalid"}},
	{"schemes of probes as they are written", `{readinessProbe: {httpGet: {port: 80}}, livenessProbe: {httpGet: {port: 80, scheme: HTTPS}}}`, validate.Limits{}, nil},
	{"a scheme of a probe that is none", `readinessProbe: {httpGet: {port: 80, scheme: https}}`, validate.Limits{}, []string{"spec.readinessProbe.httpGet.scheme: FieldValueInvalid"}},
	{"a start that is none", `startStrategy: Later`, validate.Limits{}, []string{"spec.startStrategy: FieldValueInvalid"}},
	{"a DNS policy that is none", `dnsPolicy: Mine`, validate.Limits{}, []string{"spec.dnsPolicy: FieldValueNotSupported"}},
	{"a name server of one link", `dnsConfig: {nameservers: ["fe80::1%eth0"]}`, validate.Limits{}, []string{"nameservers: FieldValueInvalid"}},
	{"name servers that are none", `dnsConfig: {nameservers: [a, 1.1.1.1, 1.1.1.1, 1.1.1.1]}`, validate.Limits{}, []string{"nameservers: FieldValueInvalid", "nameservers: FieldValueInvalid"}},
	{"a domain to search that is none", `dnsConfig: {searches: [a_b, ok.]}`, validate.Limits{}, []string{"searchDomains: FieldValueInvalid"}},
	{"keys for no user", `accessCredentials: [{sshPublicKey: {source: {secret: {secretName: a}}, propagationMethod: {qemuGuestAgent: {users: []}}}}, {}]`, validate.Limits{},
		[]string{"spec.accessCredentials[0].sshPublicKey.propagationMethod.qemuGuestAgent.users: FieldValueInvalid", "spec.accessCredentials[1]: FieldValueInvalid"}},
	{"keys for users that no guest can have", `accessCredentials: [{sshPublicKey: {source: {secret: {secretName: ../a}}, propagationMethod: {qemuGuestAgent: {users: [root, "a:b", -x, 'EXAMPLE\bob']}}}}]`, validate.Limits{}, []string{
		"spec.accessCredentials[0].sshPublicKey.source.secret.secretName: FieldValueInvalid",
		"spec.accessCredentials[0].sshPublicKey.propagationMethod.qemuGuestAgent.users[1]: FieldValueInvalid", "spec.accessCredentials[0].sshPublicKey.propagationMethod.qemuGuestAgent.users[2]: FieldValueInvalid"}},
	{"keys on a drive that is not there", `accessCredentials: [{sshPublicKey: {source: {secret: {secretName: a}}, propagationMethod: {configDrive: {}}}}]`, validate.Limits{}, []string{"spec.accessCredentials[0].sshPublicKey.propagationMethod: FieldValueInvalid"}},
	{"no node that could be", `affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}`, validate.Limits{}, []string{"spec.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: FieldValueInvalid"}},
	{"nodes that are asked for wrongly", `affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, preference: {matchExpressions: [{key: a, operator: Exists, values: [b]}, {key: a, operator: Gt}, {key: "", operator: x}]}}]}}`, validate.Limits{}, []string{
		"spec.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: FieldValueInvalid",
		"spec.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].values: FieldValueInvalid",
		"spec.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[1].values: FieldValueInvalid",
		"spec.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[2].operator: FieldValueInvalid",
		"spec.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[2].key: FieldValueInvalid",
		"spec.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[2].key: FieldValueInvalid"}},
	{"the same constraint twice", `topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 1, topologyKey: b, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]`, validate.Limits{}, []string{"spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: FieldValueInvalid"}},
	{"a constraint that is wrong", `topologySpreadConstraints: [{maxSkew: 0, topologyKey: "", whenUnsatisfiable: x, minDomains: 0, nodeAffinityPolicy: x, nodeTaintsPolicy: x, matchLabelKeys: [a]}]`, validate.Limits{}, []string{
		"spec.topologySpreadConstraints[0].maxSkew: FieldValueInvalid", "spec.topologySpreadConstraints[0].topologyKey: FieldValueInvalid", "spec.topologySpreadConstraints[0].whenUnsatisfiable: FieldValueInvalid",
		"spec.topologySpreadConstraints[0].minDomains: FieldValueInvalid", "spec.topologySpreadConstraints[0].minDomains: FieldValueInvalid",
		"spec.topologySpreadConstraints[0].nodeAffinityPolicy: FieldValueInvalid", "spec.topologySpreadConstraints[0].nodeTaintsPolicy: FieldValueInvalid", "spec.topologySpreadConstraints[0].matchLabelKeys: FieldValueInvalid"}},
	{"a constraint whose pods are chosen wrongly", `topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [b], labelSelector: {matchLabels: {b: c}, matchExpressions: [{key: "a b", operator: In}]}}]`, validate.Limits{}, []string{
		"spec.topologySpreadConstraints[0].matchLabelKeys[0]: FieldValueInvalid", "spec.topologySpreadConstraints.labelSelector.matchExpressions[0].values: FieldValueInvalid", "spec.topologySpreadConstraints.labelSelector.matchExpressions[0].key: FieldValueInvalid"}},
	{"pods of namespaces that are none", `affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: "", namespaces: [a, b_c]}]}}`, validate.Limits{}, []string{
		"spec.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespace: FieldValueInvalid", "spec.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: FieldValueInvalid"}},
	{"taints that are tolerated", `tolerations: [{operator: Exists}, {key: a, value: b, effect: NoSchedule}, {key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]`, validate.Limits{}, nil},
	{"taints that are none", `tolerations: [{}, {key: a, operator: x, effect: x}, {key: "a b", operator: Exists, value: c}, {key: a, value: "b c", tolerationSeconds: 5}]`, validate.Limits{}, []string{
		"spec.tolerations[0].operator: FieldValueInvalid", "spec.tolerations[1].operator: FieldValueInvalid", "spec.tolerations[1].effect: FieldValueInvalid", "spec.tolerations[2].key: FieldValueInvalid",
		"spec.tolerations[2].value: FieldValueInvalid", "spec.tolerations[3].value: FieldValueInvalid", "spec.tolerations[3].effect: FieldValueInvalid"}},
}
