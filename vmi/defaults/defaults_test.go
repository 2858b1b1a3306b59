package defaults_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func Example() {
	v := defaults.Instance(&vmi.VirtualMachineInstance{}, defaults.Profile{Architecture: defaults.ARM64})
	fmt.Println(v.Spec.Domain.Machine.Type, v.Spec.Domain.CPU.Model, v.Spec.Domain.Devices.Interfaces[0].Name)
	// Output: virt host-passthrough default
}

// TestDefaults compares the part of the spec that a case is about.
func TestDefaults(t *testing.T) {
	for _, tt := range []struct {
		name    string
		in      string
		profile defaults.Profile
		part    func(s *vmi.VirtualMachineInstanceSpec) any
		want    string
	}{
		{"a VMI without interfaces gets one on the pod network", `{}`, defaults.Profile{}, interfaces, `[{name: default, bridge: {}}]`},
		{"the cluster decides the binding", `{}`, defaults.Profile{Binding: defaults.Masquerade}, interfaces, `[{name: default, masquerade: {}}]`},
		{"an interface that is listed gets a bridge", `{domain: {devices: {interfaces: [{name: a}, {name: c}]}}, networks: [{name: a, multus: {networkName: b}}, {name: c, pod: {}}]}`, defaults.Profile{Binding: defaults.Masquerade}, interfaces, `[{name: a, bridge: {}}, {name: c, bridge: {}}]`},
		{"a VMI that wants no interface gets none", `{domain: {devices: {autoattachPodInterface: false}}}`, defaults.Profile{}, interfaces, `null`},
		{"a binding of old is not hidden", `{domain: {devices: {interfaces: [{name: a, slirp: {}}]}}}`, defaults.Profile{}, interfaces, `[{name: a, slirp: {}}]`},

		{"a volume without a disk gets one on the SATA bus", `{volumes: [{name: a}]}`, defaults.Profile{}, disks, `[{name: a, disk: {bus: sata}}]`},
		{"a volume that a file system shows gets none", `{domain: {devices: {filesystems: [{name: a, virtiofs: {}}]}}, volumes: [{name: a}]}`, defaults.Profile{}, disks, `null`},
		{"other architectures have virtio", `{architecture: arm64, domain: {devices: {disks: [{name: a}, {name: b, cdrom: {}}]}}}`, defaults.Profile{}, disks, `[{name: a, disk: {bus: virtio}}, {name: b, cdrom: {bus: scsi, readonly: true, tray: closed}}]`},
		{"a drive is closed", `{domain: {devices: {disks: [{name: b, cdrom: {}}]}}}`, defaults.Profile{}, disks, `[{name: b, cdrom: {bus: sata, readonly: true, tray: closed}}]`},
		{"a disk gets the bus that it needs", `{domain: {devices: {disks: [{name: a, disk: {readonly: true}}, {name: b, dedicatedIOThread: true}, {name: c, lun: {reservation: true}}, {name: d, lun: {}}]}}}`, defaults.Profile{}, disks,
			`[{name: a, disk: {bus: virtio, readonly: true}}, {name: b, dedicatedIOThread: true, disk: {bus: virtio}}, {name: c, lun: {bus: scsi, reservation: true}}, {name: d, lun: {bus: scsi}}]`},
		{"a bus that is named stays", `{domain: {devices: {disks: [{name: a, disk: {bus: scsi}}]}}}`, defaults.Profile{}, disks, `[{name: a, disk: {bus: scsi}}]`},
		{"blocks that are named match", `{domain: {devices: {disks: [{name: a, disk: {bus: scsi}, blockSize: {matchVolume: {}}}]}}}`, defaults.Profile{}, disks, `[{name: a, disk: {bus: scsi}, blockSize: {matchVolume: {enabled: true}}}]`},

		{"CPUs that are asked for are sockets", `{domain: {resources: {requests: {cpu: 2500m}}}}`, defaults.Profile{}, cpu, `{cores: 1, sockets: 3, threads: 1, maxSockets: 12, model: host-model}`},
		{"the limit counts more than the request", `{domain: {resources: {requests: {cpu: 1}, limits: {cpu: 2}}}}`, defaults.Profile{}, cpu, `{cores: 1, sockets: 2, threads: 1, maxSockets: 8, model: host-model}`},
		{"CPUs that the cluster asks for are sockets too", `{}`, defaults.Profile{CPURequest: new(resource.MustParse("1500m"))}, cpu, `{cores: 1, sockets: 2, threads: 1, maxSockets: 8, model: host-model}`},
		{"no sockets follow where cores are named", `{domain: {cpu: {cores: 2}, resources: {limits: {cpu: 4}}}}`, defaults.Profile{NoLiveUpdate: true}, func(s *vmi.VirtualMachineInstanceSpec) any { return s.Domain.CPU.VCPUs() }, `2`},
		{"a VMI does not grow beyond 512 processors", `{domain: {cpu: {sockets: 64, cores: 4, threads: 1}}}`, defaults.Profile{}, cpu, `{cores: 4, sockets: 64, threads: 1, maxSockets: 128, model: host-model}`},
		{"a VMI that is larger stays", `{domain: {cpu: {sockets: 600, cores: 1, threads: 1}}}`, defaults.Profile{}, cpu, `{cores: 1, sockets: 600, threads: 1, maxSockets: 600, model: host-model}`},
		{"the cluster decides the model and the growth", `{domain: {cpu: {sockets: 2, cores: 1, threads: 1}}}`, defaults.Profile{CPUModel: "Haswell", MaxSockets: 16}, cpu, `{cores: 1, sockets: 2, threads: 1, maxSockets: 16, model: Haswell}`},
		{"nothing grows where nothing is added", `{}`, defaults.Profile{NoLiveUpdate: true}, cpu, `{cores: 1, sockets: 1, threads: 1, model: host-model}`},
		{"nothing grows on arm64", `{architecture: arm64}`, defaults.Profile{CPUModel: "Haswell"}, cpu, `{cores: 1, sockets: 1, threads: 1, model: host-passthrough}`},
		{"a limit asks for as much", `{domain: {resources: {limits: {cpu: 2, memory: 1Gi}}}}`, defaults.Profile{}, resources, `{limits: {cpu: "2", memory: 1Gi}, requests: {cpu: "2"}}`},
		{"the cluster decides what is asked for", `{}`, defaults.Profile{CPURequest: new(resource.MustParse("300m"))}, resources, `{requests: {cpu: 300m}}`},

		{"the guest sees what is asked for", `{domain: {resources: {requests: {memory: 64Mi}, limits: {memory: 1Gi}}}}`, defaults.Profile{}, memory, `{guest: 64Mi}`},
		{"the guest sees its limit", `{domain: {resources: {limits: {memory: 128Mi}}}}`, defaults.Profile{}, memory, `{guest: 128Mi}`},
		{"the guest sees one huge page", `{domain: {memory: {hugepages: {pageSize: 2Mi}}}}`, defaults.Profile{}, memory, `{guest: 2Mi, hugepages: {pageSize: 2Mi}}`},
		{"large guests can grow", `{domain: {memory: {guest: 2Gi}}}`, defaults.Profile{}, memory, `{guest: 2Gi, maxGuest: 8Gi}`},
		{"guests of odd sizes cannot grow", `{domain: {memory: {guest: 1025Mi}}}`, defaults.Profile{}, memory, `{guest: 1025Mi}`},
		{"guests of large pages grow by pages", `{domain: {memory: {guest: 1536Mi, hugepages: {pageSize: 1Gi}}}}`, defaults.Profile{}, memory, `{guest: 1536Mi, hugepages: {pageSize: 1Gi}}`},
		{"guests with the memory nodes of their node do not grow", `{domain: {cpu: {numa: {guestMappingPassthrough: {}}}, memory: {guest: 2Gi}}}`, defaults.Profile{}, memory, `{guest: 2Gi}`},
		{"the cluster decides how far guests grow", `{domain: {memory: {guest: 2Gi}}}`, defaults.Profile{MaxGuest: new(resource.MustParse("3Gi"))}, memory, `{guest: 2Gi, maxGuest: 3Gi}`},
		{"no guest grows on s390x", `{architecture: s390x, domain: {memory: {guest: 2Gi}}}`, defaults.Profile{}, memory, `{guest: 2Gi}`},

		{"ACPI is on", `{}`, defaults.Profile{}, features, `{acpi: {enabled: true}}`},
		{"there is no ACPI on s390x", `{architecture: s390x}`, defaults.Profile{}, features, `{acpi: {enabled: false}}`},
		{"ACPI that is on stays", `{architecture: s390x, domain: {features: {acpi: {enabled: true}}}}`, defaults.Profile{}, features, `{acpi: {enabled: true}}`},
		{"ACPI that is off stays", `{domain: {features: {acpi: {enabled: false}}}}`, defaults.Profile{}, features, `{acpi: {enabled: false}}`},
		{"what is named is on", `{domain: {features: {smm: {}, apic: {}, hyperv: {relaxed: {}, vendorid: {vendorid: a}, spinlocks: {}}}}}`, defaults.Profile{}, features,
			`{acpi: {enabled: true}, smm: {enabled: true}, apic: {enabled: true}, hyperv: {relaxed: {enabled: true}, vendorid: {vendorid: a, enabled: true}, spinlocks: {enabled: true, spinlocks: 4096}}}`},
		{"what Windows' features build on is on", `{domain: {features: {hyperv: {synictimer: {direct: {}}, tlbflush: {extended: {}}}}}}`, defaults.Profile{}, features,
			`{acpi: {enabled: true}, hyperv: {synictimer: {enabled: true, direct: {enabled: true}}, synic: {enabled: true}, vpindex: {enabled: true}, tlbflush: {enabled: true, extended: {enabled: true}}}}`},

		{"arm64 starts with UEFI", `{architecture: arm64}`, defaults.Profile{}, firmware, `{bootloader: {efi: {secureBoot: false}}}`},
		{"amd64 starts as it is", `{}`, defaults.Profile{}, firmware, `null`},
		{"the cluster decides the machine type", `{}`, defaults.Profile{Architecture: defaults.S390X, MachineTypes: map[string]string{defaults.S390X: "s390-ccw-virtio-9.2"}}, func(s *vmi.VirtualMachineInstanceSpec) any { return s.Domain.Machine }, `{type: s390-ccw-virtio-9.2}`},
		{"the cluster decides the eviction", `{}`, defaults.Profile{EvictionStrategy: vmi.EvictionLiveMigrate}, func(s *vmi.VirtualMachineInstanceSpec) any { return s.EvictionStrategy }, `LiveMigrate`},
		{"probes are asked every ten seconds", `{livenessProbe: {httpGet: {port: 80}, failureThreshold: 5}}`, defaults.Profile{}, func(s *vmi.VirtualMachineInstanceSpec) any { return s.LivenessProbe },
			`{httpGet: {port: 80}, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 5}`},
		{"a watchdog is that of amd64", `{domain: {devices: {watchdog: {name: a}}}}`, defaults.Profile{}, watchdog, `{name: a, i6300esb: {action: reset}}`},
		{"a watchdog is that of s390x", `{architecture: s390x, domain: {devices: {watchdog: {name: a}}}}`, defaults.Profile{}, watchdog, `{name: a, diag288: {action: reset}}`},
		{"a watchdog of another architecture stays", `{domain: {devices: {watchdog: {name: a, diag288: {}}}}}`, defaults.Profile{}, watchdog, `{name: a, diag288: {action: reset}}`},
		{"a watchdog resets", `{domain: {devices: {watchdog: {name: a, i6300esb: {}}}}}`, defaults.Profile{}, watchdog, `{name: a, i6300esb: {action: reset}}`},
		{"an input is a tablet on USB", `{domain: {devices: {inputs: [{name: a}]}}}`, defaults.Profile{}, func(s *vmi.VirtualMachineInstanceSpec) any { return s.Domain.Devices.Inputs }, `[{name: a, type: tablet, bus: usb}]`},
		{"timers that are named are there", `{domain: {clock: {timer: {hpet: {present: false}, kvm: {}, pit: {}, rtc: {}, hyperv: {}}}}}`, defaults.Profile{}, func(s *vmi.VirtualMachineInstanceSpec) any { return s.Domain.Clock.Timer },
			`{hpet: {present: false}, kvm: {present: true}, pit: {present: true}, rtc: {present: true}, hyperv: {present: true}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var in vmi.VirtualMachineInstanceSpec
			require.NoError(t, yaml.UnmarshalStrict([]byte(tt.in), &in))
			before := in.DeepCopy()
			out := defaults.Spec(&in, tt.profile)
			require.Equal(t, before, &in, "the input is changed")
			require.Equal(t, out, defaults.Spec(out, tt.profile), "applied twice")
			got, err := yaml.Marshal(tt.part(out))
			require.NoError(t, err)
			require.YAMLEq(t, tt.want, string(got))
		})
	}
}

func interfaces(s *vmi.VirtualMachineInstanceSpec) any { return s.Domain.Devices.Interfaces }
func disks(s *vmi.VirtualMachineInstanceSpec) any      { return s.Domain.Devices.Disks }
func cpu(s *vmi.VirtualMachineInstanceSpec) any        { return s.Domain.CPU }
func memory(s *vmi.VirtualMachineInstanceSpec) any     { return s.Domain.Memory }
func resources(s *vmi.VirtualMachineInstanceSpec) any  { return s.Domain.Resources }
func features(s *vmi.VirtualMachineInstanceSpec) any   { return s.Domain.Features }
func watchdog(s *vmi.VirtualMachineInstanceSpec) any   { return s.Domain.Devices.Watchdog }
func firmware(s *vmi.VirtualMachineInstanceSpec) any   { return s.Domain.Firmware }

func TestImagesAreAlwaysPulledIfTheirReferenceMayChangeItsMeaning(t *testing.T) {
	for image, want := range map[string]corev1.PullPolicy{
		"disk":                     corev1.PullAlways,
		"disk:latest":              corev1.PullAlways,
		"disk:1":                   corev1.PullIfNotPresent,
		"host:5000/disk":           corev1.PullAlways,
		"host:5000/disk:1":         corev1.PullIfNotPresent,
		"disk@sha256:0123":         corev1.PullIfNotPresent,
		"host:5000/disk@sha256:01": corev1.PullIfNotPresent,
	} {
		v := defaults.Instance(vmitest.New(vmitest.WithContainerDisk("a", image)), defaults.Profile{})
		require.Equal(t, want, v.Spec.Volumes[0].ContainerDisk.ImagePullPolicy, image)
	}
}

func TestANewVMIIsPending(t *testing.T) {
	now := metav1.NewTime(time.Unix(1, 0))
	v := defaults.Instance(vmitest.New(), defaults.Profile{Now: now})
	require.Equal(t, []string{vmi.Finalizer}, v.Finalizers)
	require.Equal(t, map[string]string{vmi.PCITopologyAnnotation: "v3"}, v.Annotations)
	require.Equal(t, vmi.PhasePending, v.Status.Phase)
	require.Equal(t, []vmi.PhaseTransitionTimestamp{{Phase: vmi.PhasePending, PhaseTransitionTimestamp: now}}, v.Status.PhaseTransitionTimestamps)
	require.Equal(t, defaults.UUID(v.UID), v.Spec.Domain.Firmware.UUID)
	require.Equal(t, v, defaults.Instance(v, defaults.Profile{Now: metav1.Now()}))
}

func TestAPendingVMIThatWasStoredWithoutDefaultsGetsTheLayoutOfItsBusOnly(t *testing.T) {
	v := vmitest.New(vmitest.WithPhase(vmi.PhasePending))
	done := defaults.Instance(v, defaults.Profile{Now: metav1.Now()})
	require.Equal(t, map[string]string{vmi.PCITopologyAnnotation: "v3"}, done.Annotations)
	require.Equal(t, v.Finalizers, done.Finalizers)
	require.Equal(t, v.Status, done.Status)
	running := vmitest.New(vmitest.WithPhase(vmi.PhaseRunning))
	require.Empty(t, defaults.Instance(running, defaults.Profile{}).Annotations, "its guest has another layout")
}

func TestOnlyMachineTypesWithPCIExpressHaveALayoutOfTheirBus(t *testing.T) {
	for _, tt := range []struct {
		architecture, machineType string
		layout                    bool
	}{
		{"", "", true}, {"amd64", "pc-q35-9.2", true}, {"amd64", "pc-i440fx-7.2", false}, {"amd64", "microvm", false},
		{"arm64", "", true}, {"arm64", "virt-rhel9.6.0", true}, {"s390x", "", false}, {"s390x", "s390-ccw-virtio-9.2", false},
	} {
		v := vmitest.New()
		v.Spec.Architecture, v.Spec.Domain.Machine = tt.architecture, &vmi.Machine{Type: tt.machineType}
		_, ok := defaults.Instance(v, defaults.Profile{}).Annotations[vmi.PCITopologyAnnotation]
		require.Equal(t, tt.layout, ok, "%s %s", tt.architecture, tt.machineType)
	}
}

func TestTheStatusOfAVMIThatRunsStays(t *testing.T) {
	v := vmitest.New()
	v.Status = vmi.VirtualMachineInstanceStatus{Phase: vmi.PhaseRunning}
	out := defaults.Instance(v, defaults.Profile{Now: metav1.Now()})
	require.Equal(t, v.Status, out.Status)
	require.Equal(t, v.ObjectMeta, out.ObjectMeta)
}

func TestATemplateKeepsWhatTheGuestMustNotSeeChange(t *testing.T) {
	v := &vmi.VirtualMachine{}
	p := defaults.Profile{UUID: "u", Serial: "s"}
	require.Equal(t, v, defaults.VirtualMachine(v, p), "a VM without a template is refused by the validation")
	v.Spec.Template = &vmi.VirtualMachineInstanceTemplateSpec{}
	out := defaults.VirtualMachine(v, p)
	require.Equal(t, vmi.VirtualMachineInstanceSpec{
		Architecture: "amd64",
		Domain:       vmi.DomainSpec{Machine: &vmi.Machine{Type: "q35"}, Firmware: &vmi.Firmware{UUID: "u", Serial: "s"}},
	}, out.Spec.Template.Spec)
	require.Equal(t, out, defaults.VirtualMachine(out, defaults.Profile{UUID: "other", Serial: "other"}))
	require.Nil(t, v.Spec.Template.Spec.Domain.Machine)
}

func TestASetHasOneVMI(t *testing.T) {
	r := &vmi.VirtualMachineInstanceReplicaSet{Spec: vmi.VirtualMachineInstanceReplicaSetSpec{Template: &vmi.VirtualMachineInstanceTemplateSpec{}}}
	out := defaults.ReplicaSet(r, defaults.Profile{})
	require.Equal(t, int32(1), *out.Spec.Replicas)
	require.Equal(t, "q35", out.Spec.Template.Spec.Domain.Machine.Type)
	require.Equal(t, out, defaults.ReplicaSet(out, defaults.Profile{}))
}
