package instancetype_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/instancetype"
)

// small is an instance type of one processor.
const small = `{cpu: {guest: 1}, memory: {guest: 2Gi}}`

// from reads a YAML text. An empty one is nil.
func from[T any](t *testing.T, text string) *T {
	t.Helper()
	if text == "" {
		return nil
	}
	out := new(T)
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), out))
	return out
}

// vm is a VM of a template that names an instance type and a preference.
func vm(t *testing.T, spec, annotations string) *vmi.VirtualMachine {
	v := &vmi.VirtualMachine{Spec: vmi.VirtualMachineSpec{Instancetype: &vmi.InstancetypeMatcher{Name: "t"}, Preference: &vmi.PreferenceMatcher{Name: "p"}}}
	v.Spec.Template = &vmi.VirtualMachineInstanceTemplateSpec{Spec: *from[vmi.VirtualMachineInstanceSpec](t, spec)}
	if annotations != "" {
		v.Spec.Template.ObjectMeta.Annotations = *from[map[string]string](t, annotations)
	}
	return v
}

func fieldsOf(l field.ErrorList) []string {
	var out []string
	for _, e := range l {
		out = append(out, e.Field)
	}
	return out
}

func TestProcessorsAreDividedAsThePreferenceSays(t *testing.T) {
	t.Parallel()
	type topology = [3]uint32 // sockets, cores, threads
	for name, tt := range map[string]struct {
		guest  string
		cpu    string
		ratio  string
		want   topology
		reject bool // at admission
	}{
		"sockets without a preference":        {guest: "4", want: topology{4, 1, 1}},
		"cores, by the older name":            {guest: "4", cpu: `{preferredCPUTopology: preferCores}`, want: topology{1, 4, 1}},
		"threads":                             {guest: "4", cpu: `{preferredCPUTopology: threads}`, want: topology{1, 1, 4}},
		"any are sockets":                     {guest: "4", cpu: `{preferredCPUTopology: any}`, want: topology{4, 1, 1}},
		"two cores of each socket":            {guest: "8", cpu: `{preferredCPUTopology: spread}`, want: topology{4, 2, 1}},
		"the older ratio":                     {guest: "12", cpu: `{preferredCPUTopology: preferSpread}`, ratio: "3", want: topology{4, 3, 1}},
		"the ratio before the older one":      {guest: "12", cpu: `{preferredCPUTopology: spread, spreadOptions: {ratio: 4}}`, ratio: "3", want: topology{3, 4, 1}},
		"sockets, cores and threads":          {guest: "16", cpu: `{preferredCPUTopology: spread, spreadOptions: {across: SocketsCoresThreads}}`, want: topology{4, 2, 2}},
		"36 are no multiple of 8":             {guest: "36", cpu: `{preferredCPUTopology: spread, spreadOptions: {across: SocketsCoresThreads, ratio: 4}}`, want: topology{4, 4, 2}, reject: true},
		"cores and threads":                   {guest: "6", cpu: `{preferredCPUTopology: spread, spreadOptions: {across: CoresThreads}}`, want: topology{1, 3, 2}},
		"one is no multiple of two":           {guest: "1", cpu: `{preferredCPUTopology: spread}`, want: topology{1, 1, 1}, reject: true},
		"three are none either":               {guest: "3", cpu: `{preferredCPUTopology: spread}`, want: topology{1, 2, 1}, reject: true},
		"four are no multiple of eight":       {guest: "4", cpu: `{preferredCPUTopology: spread, spreadOptions: {across: SocketsCoresThreads, ratio: 4}}`, want: topology{0, 4, 2}, reject: true},
		"a ratio of none divides nothing":     {guest: "4", cpu: `{preferredCPUTopology: spread, spreadOptions: {ratio: 0}}`, want: topology{4, 1, 1}, reject: true},
		"an instance type without processors": {guest: "0", want: topology{1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			it := from[instancetype.VirtualMachineInstancetypeSpec](t, `{cpu: {guest: `+tt.guest+`}, memory: {guest: 2Gi}}`)
			var p *instancetype.VirtualMachinePreferenceSpec
			if tt.cpu != "" {
				p = from[instancetype.VirtualMachinePreferenceSpec](t, `{cpu: `+tt.cpu+`}`)
			}
			if tt.ratio != "" {
				p.PreferSpreadSocketToCoreRatio = *from[uint32](t, tt.ratio)
			}
			s, conflicts := instancetype.Apply(&vmi.VirtualMachineInstanceSpec{}, it, p, defaults.Profile{})
			require.Empty(t, conflicts)
			require.Equal(t, tt.want, topology{s.Domain.CPU.Sockets, s.Domain.CPU.Cores, s.Domain.CPU.Threads})
			_, faults := instancetype.Check(vm(t, `{}`, ""), it, p, defaults.Profile{})
			if tt.reject {
				require.Equal(t, []string{"instancetype.spec.cpu.guest"}, fieldsOf(faults))
			} else {
				require.Empty(t, faults)
			}
		})
	}
}

func TestAPodAsksForLessMemoryThanItsGuestSees(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ guest, percent, want string }{
		{"1Gi", "50", "512Mi"}, {"4Gi", "15", "3650722304"}, {"128M", "15", "108800k"},
		{"1.5Gi", "10", "1449551360"}, {"3Gi", "33", "2158220800"}, {"1Gi", "100", "0"},
	} {
		it := from[instancetype.VirtualMachineInstancetypeSpec](t, `{cpu: {guest: 1}, memory: {guest: `+tt.guest+`, overcommitPercent: `+tt.percent+`}}`)
		s, conflicts := instancetype.Apply(&vmi.VirtualMachineInstanceSpec{}, it, nil, defaults.Profile{})
		require.Empty(t, conflicts)
		require.Equal(t, tt.want, s.Domain.Resources.Requests.Memory().String(), "%s less %s %%", tt.guest, tt.percent)
		require.True(t, s.Domain.Memory.Guest.Equal(it.Memory.Guest), "the guest sees all of it")
	}
}

func TestWhatTemplateAndInstanceTypeSetBothIsAConflict(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		template, annotations, size string
		want                        []string // after spec.template.spec
	}{
		"of memory only the first": {
			template: `{nodeSelector: {}, schedulerName: a, domain: {devices: {}, cpu: {sockets: 1, cores: 1, threads: 1, model: Haswell},
				resources: {requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1}}, memory: {guest: 1Gi, maxGuest: 2Gi}}}`,
			size: `{cpu: {guest: 2, model: EPYC}, memory: {guest: 2Gi}, nodeSelector: {a: b}, schedulerName: b}`,
			want: []string{"nodeSelector", "schedulerName", "domain.resources.requests.cpu", "domain.resources.limits.cpu",
				"domain.cpu.sockets", "domain.cpu.cores", "domain.cpu.threads", "domain.cpu.model", "domain.memory.guest"},
		},
		"huge pages before the request": {
			template: `{domain: {devices: {}, memory: {hugepages: {pageSize: 2Mi}, maxGuest: 4Gi}, resources: {requests: {memory: 1Gi}}}}`,
			size:     `{cpu: {guest: 1}, memory: {guest: 2Gi, hugepages: {pageSize: 1Gi}, maxGuest: 8Gi}}`,
			want:     []string{"domain.memory.hugepages"},
		},
		"the limit of memory": {template: `{domain: {devices: {}, resources: {limits: {memory: 1Gi}}}}`, size: small, want: []string{"domain.resources.limits.memory"}},
		"dedicated CPUs, also where the instance type has none": {
			template: `{domain: {devices: {}, cpu: {dedicatedCpuPlacement: true, isolateEmulatorThread: true, numa: {}}}}`,
			size:     `{cpu: {guest: 1, dedicatedCPUPlacement: false, isolateEmulatorThread: false, numa: {}}, memory: {guest: 2Gi}}`,
			want:     []string{"domain.cpu.dedicatedCPUPlacement", "domain.cpu.isolateEmulatorThread", "domain.cpu.numa"},
		},
		"threads, security and devices": {
			template: `{domain: {devices: {gpus: [{name: a}], hostDevices: [{name: b}]}, ioThreads: {supplementalPoolThreadCount: 2}, ioThreadsPolicy: auto, launchSecurity: {sev: {}}}}`,
			size: `{cpu: {guest: 1}, memory: {guest: 2Gi}, ioThreads: {supplementalPoolThreadCount: 2}, ioThreadsPolicy: shared, launchSecurity: {sev: {}},
				gpus: [{name: c}], hostDevices: [{name: d}]}`,
			want: []string{"domain.ioThreads.supplementalPoolThreadCount", "domain.ioThreadsPolicy", "domain.launchSecurity", "domain.devices.gpus", "domain.devices.hostDevices"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, it := vm(t, tt.template, tt.annotations), from[instancetype.VirtualMachineInstancetypeSpec](t, tt.size)
			same, faults := instancetype.Check(v, it, from[instancetype.VirtualMachinePreferenceSpec](t, `{preferredSubdomain: a}`), defaults.Profile{})
			var want []string
			for _, f := range tt.want {
				want = append(want, "spec.template.spec."+f)
			}
			require.Equal(t, want, fieldsOf(faults))
			require.Equal(t, v, same)
			s, conflicts := instancetype.Apply(&v.Spec.Template.Spec, it, nil, defaults.Profile{})
			require.Equal(t, "spec."+tt.want[0], conflicts[0].Field)
			require.Equal(t, &v.Spec.Template.Spec, s)
		})
	}
}

// applied is what becomes of a template.
type applied struct {
	template, annotations, size, preference string
	// want is a part of the expanded spec.template.
	want string
}

// requireApplied compares what becomes of the template with what is wanted, as objects.
func requireApplied(t *testing.T, a applied) {
	t.Helper()
	v := vm(t, a.template, a.annotations)
	before := v.DeepCopy()
	it, p := from[instancetype.VirtualMachineInstancetypeSpec](t, a.size), from[instancetype.VirtualMachinePreferenceSpec](t, a.preference)
	sizeBefore, preferenceBefore := it.DeepCopy(), p.DeepCopy()
	out, conflicts := instancetype.Expand(v, it, p, defaults.Profile{Binding: defaults.Masquerade})
	require.Empty(t, conflicts)
	require.Equal(t, before, v, "the input is not changed")
	require.Equal(t, sizeBefore, it)
	require.Equal(t, preferenceBefore, p)
	require.Empty(t, instancetype.References(out))
	raw, err := yaml.Marshal(out.Spec.Template)
	require.NoError(t, err)
	var got, want any
	require.NoError(t, yaml.Unmarshal(raw, &got))
	require.NoError(t, yaml.Unmarshal([]byte(a.want), &want))
	require.Equal(t, want, part(got, want), "of\n%s", raw)
}

// part is what of is there of what wanted names. A null stands for what is not there.
func part(is, wanted any) any {
	w, ok := wanted.(map[string]any)
	if !ok || len(w) == 0 {
		return is
	}
	i, _ := is.(map[string]any)
	out := map[string]any{}
	for k := range w {
		out[k] = part(i[k], w[k])
	}
	return out
}

func TestAnInstanceTypeIsApplied(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]applied{
		"what it leaves open is the template's": {
			template: `{domain: {devices: {}, memory: {hugepages: {pageSize: 2Mi}, maxGuest: 4Gi}, cpu: {model: Haswell, dedicatedCpuPlacement: true, maxSockets: 8}}}`,
			size:     `{cpu: {guest: 2}, memory: {guest: 2Gi}}`,
			want: `{spec: {domain: {memory: {guest: 2Gi, hugepages: {pageSize: 2Mi}, maxGuest: 4Gi},
				cpu: {sockets: 2, cores: 1, threads: 1, model: Haswell, dedicatedCpuPlacement: true, maxSockets: 8}}}}`,
		},
		"its maximum of sockets replaces that of the template": {
			template: `{domain: {devices: {}, cpu: {maxSockets: 8}}}`, size: `{cpu: {guest: 2, maxSockets: 4}, memory: {guest: 2Gi}}`,
			want: `{spec: {domain: {cpu: {maxSockets: 4}}}}`,
		},
		"all fields": {
			template: `{domain: {devices: {}}}`,
			size: `{cpu: {guest: 2, model: EPYC, dedicatedCPUPlacement: true, isolateEmulatorThread: true, numa: {guestMappingPassthrough: {}}, maxSockets: 4},
				memory: {guest: 2Gi, hugepages: {pageSize: 1Gi}, maxGuest: 4Gi}, nodeSelector: {a: b}, schedulerName: c, ioThreadsPolicy: supplementalPool,
				ioThreads: {supplementalPoolThreadCount: 2}, launchSecurity: {sev: {}}, gpus: [{name: d, deviceName: e}], hostDevices: [{name: f, deviceName: g}], annotations: {h: i}}`,
			want: `{metadata: {annotations: {h: i}}, spec: {nodeSelector: {a: b}, schedulerName: c, domain: {ioThreadsPolicy: supplementalPool, ioThreads: {supplementalPoolThreadCount: 2},
				launchSecurity: {sev: {}}, memory: {guest: 2Gi, hugepages: {pageSize: 1Gi}, maxGuest: 4Gi},
				cpu: {sockets: 2, cores: 1, threads: 1, model: EPYC, dedicatedCpuPlacement: true, isolateEmulatorThread: true, numa: {guestMappingPassthrough: {}}, maxSockets: 4},
				devices: {gpus: [{name: d, deviceName: e}], hostDevices: [{name: f, deviceName: g}]}}}}`,
		},
		"annotations of all": {
			template: `{domain: {devices: {}}}`, annotations: `{d: user}`, size: `{cpu: {guest: 1}, memory: {guest: 2Gi}, annotations: {a: it, b: it}}`,
			preference: `{annotations: {a: pref, c: pref, d: pref}}`, want: `{metadata: {annotations: {a: it, b: it, c: pref, d: user}}}`,
		},
		"its security before that of the preference": {
			template: `{domain: {devices: {}}}`, size: `{cpu: {guest: 1}, memory: {guest: 2Gi}, launchSecurity: {sev: {}}}`,
			preference: `{preferredLaunchSecurity: {snp: {}}}`, want: `{spec: {domain: {launchSecurity: {sev: {}}}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireApplied(t, a)
		})
	}
}

func TestAnotherValueOfAnAnnotationIsAConflict(t *testing.T) {
	t.Parallel()
	it := from[instancetype.VirtualMachineInstancetypeSpec](t, `{cpu: {guest: 1}, memory: {guest: 2Gi}, annotations: {a: "1", b: "2"}}`)
	_, conflicts := instancetype.Expand(vm(t, `{}`, `{a: "1", b: "3"}`), it, nil, defaults.Profile{})
	require.Equal(t, []string{"annotations.b"}, fieldsOf(conflicts))
}

func TestAPreferenceIsApplied(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]applied{
		"a BIOS stays, ACPI is replaced": {
			template:   `{domain: {devices: {}, firmware: {bootloader: {bios: {}}}, features: {acpi: {enabled: false}, hyperv: {spinlocks: {spinlocks: 4096}}}}}`,
			preference: `{firmware: {preferredEfi: {secureBoot: true}, preferredUseBiosSerial: true}, features: {preferredAcpi: {}, preferredHyperv: {relaxed: {}, spinlocks: {spinlocks: 8191}}, preferredSmm: {}}}`,
			want:       `{spec: {domain: {firmware: {bootloader: {bios: {useSerial: true}}}, features: {hyperv: {relaxed: {}, spinlocks: {spinlocks: 4096}}, smm: {}}}}}`,
		},
		"UEFI gets what it leaves open": {
			template: `{domain: {devices: {}, firmware: {bootloader: {efi: {}}}}}`, preference: `{firmware: {preferredEfi: {persistent: true}, preferredUseSecureBoot: true}}`,
			want: `{spec: {domain: {firmware: {bootloader: {efi: {secureBoot: true}}}}}}`,
		},
		"a BIOS with a serial console before UEFI": {
			template: `{domain: {devices: {}}}`, preference: `{firmware: {preferredUseBios: true, preferredUseBiosSerial: true, preferredEfi: {}}}`,
			want: `{spec: {domain: {firmware: {bootloader: {bios: {useSerial: true}}}}}}`,
		},
		"UEFI by its switch": {
			template: `{domain: {devices: {}}}`, preference: `{firmware: {preferredUseEfi: true, preferredUseSecureBoot: false}}`,
			want: `{spec: {domain: {firmware: {bootloader: {efi: {secureBoot: false}}}}}}`,
		},
		"whole settings of UEFI leave no room for the switch": {
			template: `{domain: {devices: {}}}`, preference: `{firmware: {preferredEfi: {persistent: true}, preferredUseSecureBoot: true}}`,
			want: `{spec: {domain: {firmware: {bootloader: {efi: {persistent: true}}}}}}`,
		},
		"no BIOS": {
			template: `{domain: {devices: {}}}`, preference: `{firmware: {preferredUseBios: false}}`, want: `{spec: {domain: {firmware: {bootloader: {}}}}}`,
		},
		"what the template says stays": {
			template:   `{subdomain: x, terminationGracePeriodSeconds: 0, architecture: amd64, domain: {devices: {}, clock: {utc: {}}, machine: {type: q35}}}`,
			preference: `{preferredSubdomain: a, preferredTerminationGracePeriodSeconds: 3600, preferredArchitecture: arm64, machine: {preferredMachineType: pc-q35-9.2}, clock: {preferredClockOffset: {timezone: Europe/Rome}, preferredTimer: {hpet: {present: false}}}}`,
			want:       `{spec: {subdomain: x, terminationGracePeriodSeconds: 0, architecture: amd64, domain: {machine: {type: q35}, clock: {utc: {}, timer: {hpet: {present: false}}}}}}`,
		},
		"what it leaves open does not": {
			template:   `{domain: {devices: {}}}`,
			preference: `{preferredSubdomain: a, preferredTerminationGracePeriodSeconds: 3600, preferredArchitecture: amd64, machine: {preferredMachineType: pc-q35-9.2}, clock: {preferredClockOffset: {timezone: Europe/Rome}}, preferredLaunchSecurity: {sev: {}}}`,
			want:       `{spec: {subdomain: a, terminationGracePeriodSeconds: 3600, architecture: amd64, domain: {machine: {type: pc-q35-9.2}, clock: {timezone: Europe/Rome}, launchSecurity: {sev: {}}}}}`,
		},
		"features of the processor are added": {
			template: `{domain: {devices: {}, cpu: {features: [{name: vmx, policy: forbid}]}}}`, size: `{cpu: {guest: 2}, memory: {guest: 2Gi}}`,
			preference: `{cpu: {preferredCPUFeatures: [{name: vmx, policy: require}, {name: avx, policy: require}]}}`,
			want:       `{spec: {domain: {cpu: {features: [{name: vmx, policy: forbid}, {name: avx, policy: require}]}}}}`,
		},
		"also where there is no processor": {
			template: `{domain: {devices: {}}}`, preference: `{cpu: {preferredCPUFeatures: [{name: avx}]}}`, want: `{spec: {domain: {cpu: {features: [{name: avx}]}}}}`,
		},
		"every feature": {
			template: `{domain: {devices: {}}}`,
			preference: `{features: {preferredAcpi: {enabled: true}, preferredApic: {endOfInterrupt: true}, preferredKvm: {hidden: true}, preferredPvspinlock: {}, preferredSmm: {enabled: false},
				preferredHyperv: {relaxed: {}, vapic: {}, spinlocks: {}, vpindex: {}, runtime: {}, synic: {}, synictimer: {}, reset: {}, vendorid: {}, frequencies: {}, reenlightenment: {}, tlbflush: {}, ipi: {}, evmcs: {}}}}`,
			want: `{spec: {domain: {features: {acpi: {enabled: true}, apic: {endOfInterrupt: true}, kvm: {hidden: true}, pvspinlock: {}, smm: {enabled: false},
				hyperv: {relaxed: {}, vapic: {}, spinlocks: {}, vpindex: {}, runtime: {}, synic: {}, synictimer: {}, reset: {}, vendorid: {}, frequencies: {}, reenlightenment: {}, tlbflush: {}, ipi: {}, evmcs: {}}}}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireApplied(t, a)
		})
	}
}

func TestAPreferenceIsAppliedToDevices(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]applied{
		"each device gets what it leaves open": {
			template: `{volumes: [{name: a, emptyDisk: {capacity: 1Mi}}, {name: b, emptyDisk: {capacity: 1Mi}}, {name: c, emptyDisk: {capacity: 1Mi}}, {name: d, emptyDisk: {capacity: 1Mi}}, {name: e, emptyDisk: {capacity: 1Mi}}],
				networks: [{name: pod, pod: {}}, {name: second, multus: {networkName: net}}],
				domain: {devices: {disks: [{name: a}, {name: b, disk: {bus: sata}, cache: writeback}, {name: c, cdrom: {}}, {name: d, lun: {}}],
				interfaces: [{name: pod}, {name: second, bridge: {}}], inputs: [{name: i, type: tablet}], tpm: {enabled: false}, sound: {name: s}, disableHotplug: true}}}`,
			preference: `{devices: {preferredDiskBus: virtio, preferredCdromBus: sata, preferredLunBus: scsi, preferredDiskCache: none, preferredDiskIO: native, preferredDiskDedicatedIoThread: true,
				preferredDiskBlockSize: {custom: {logical: 512, physical: 512}}, preferredDisableHotplug: false, preferredTPM: {persistent: true}, preferredPanicDeviceModel: isa, preferredSoundModel: ac97,
				preferredInterfaceModel: e1000e, preferredInterfaceMasquerade: {}, preferredInputBus: virtio, preferredInputType: tablet, preferredRng: {}, preferredVideoType: virtio,
				preferredBlockMultiQueue: true, preferredNetworkInterfaceMultiQueue: true, preferredUseVirtioTransitional: true}}`,
			want: `{spec: {domain: {devices: {disks: [
				{name: a, disk: {bus: virtio}, cache: none, io: native, dedicatedIOThread: true, blockSize: {custom: {logical: 512, physical: 512}}},
				{name: b, disk: {bus: sata}, cache: writeback, io: native, blockSize: {custom: {logical: 512, physical: 512}}},
				{name: c, cdrom: {bus: sata}}, {name: d, lun: {bus: scsi}},
				{name: e, disk: {bus: virtio}, cache: none, io: native, dedicatedIOThread: true, blockSize: {custom: {logical: 512, physical: 512}}}],
				interfaces: [{name: pod, model: e1000e, masquerade: {}}, {name: second, model: e1000e, bridge: {}}],
				inputs: [{name: i, type: tablet, bus: virtio}], tpm: {enabled: false}, sound: {name: s, model: ac97}, panicDevices: [{model: isa}], rng: {}, video: {type: virtio},
				blockMultiQueue: true, networkInterfaceMultiqueue: true, useVirtioTransitional: true, disableHotplug: null}}}}`,
		},
		"panic devices without a model": {
			template: `{domain: {devices: {panicDevices: [{model: hyperv}, {}]}}}`, preference: `{devices: {preferredPanicDeviceModel: isa}}`,
			want: `{spec: {domain: {devices: {panicDevices: [{model: hyperv}, {model: isa}]}}}}`,
		},
		"what the template says stays": {
			template: `{domain: {devices: {rng: {}, tpm: {}, video: {type: vga}, blockMultiQueue: false, autoattachGraphicsDevice: true, autoattachPodInterface: false}}}`,
			preference: `{devices: {preferredTPM: {persistent: true}, preferredVideoType: virtio, preferredBlockMultiQueue: true, preferredSoundModel: ac97,
				preferredAutoattachGraphicsDevice: false, preferredAutoattachPodInterface: true, preferredInterfaceModel: e1000}}`,
			want: `{spec: {domain: {devices: {tpm: {}, video: {type: vga}, blockMultiQueue: false, sound: null, autoattachGraphicsDevice: true, autoattachPodInterface: false, interfaces: null}}}}`,
		},
		"what is attached automatically": {
			template: `{domain: {devices: {}}}`,
			preference: `{devices: {preferredAutoattachGraphicsDevice: false, preferredAutoattachMemBalloon: false, preferredAutoattachPodInterface: false, preferredAutoattachSerialConsole: false,
				preferredAutoattachInputDevice: true, preferredInputBus: virtio, preferredInputType: tablet}}`,
			want: `{spec: {networks: null, domain: {devices: {autoattachGraphicsDevice: false, autoattachMemBalloon: false, autoattachPodInterface: false, autoattachSerialConsole: false,
				autoattachInputDevice: true, interfaces: null, inputs: [{name: default-0, type: tablet, bus: virtio}]}}}}`,
		},
		"the interface of a VMI that lists none": {
			template: `{domain: {devices: {}}}`, preference: `{devices: {preferredInterfaceModel: virtio}}`,
			want: `{spec: {networks: [{name: default, pod: {}}], domain: {devices: {interfaces: [{name: default, model: virtio, masquerade: {}}]}}}}`,
		},
		"hotplug is switched off though the template says nothing": {
			template: `{domain: {devices: {}}}`, preference: `{devices: {preferredDisableHotplug: true}}`, want: `{spec: {domain: {devices: {disableHotplug: true}}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireApplied(t, a)
		})
	}
}

func TestAVMWithoutEitherIsAsItWas(t *testing.T) {
	t.Parallel()
	v := vm(t, `{domain: {devices: {}}}`, "")
	v.Spec.Instancetype, v.Spec.Preference = nil, nil
	out, conflicts := instancetype.Expand(v, from[instancetype.VirtualMachineInstancetypeSpec](t, small), nil, defaults.Profile{})
	require.Empty(t, conflicts)
	require.Equal(t, v, out)
}
