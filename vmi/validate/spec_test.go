package validate_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/validate"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// spec is a change of a VMI that is right without it.
type spec func(*vmi.VirtualMachineInstanceSpec)

// faults are the fields with something wrong, with the kind of fault.
func faults(change spec) []string {
	v := vmitest.New(
		vmitest.WithContainerDisk("root", "example/fedora:40"), vmitest.WithCloudInit("cloudinit", "#!/bin/sh\n"), vmitest.WithEmptyDisk("scratch", "1Gi"),
		vmitest.WithMasquerade("default", vmi.Port{Name: "http", Port: 80}))
	v = defaults.Instance(v, defaults.Profile{})
	change(&v.Spec)
	var out []string
	for _, e := range validate.Spec(field.NewPath("spec"), &v.Spec, validate.Limits{}) {
		out = append(out, e.Field+": "+string(e.Type))
	}
	return out
}

func TestSpec(t *testing.T) {
	t.Parallel()
	disks := func(s *vmi.VirtualMachineInstanceSpec) []vmi.Disk { return s.Domain.Devices.Disks }
	nic := func(s *vmi.VirtualMachineInstanceSpec) *vmi.Interface { return &s.Domain.Devices.Interfaces[0] }
	quantities := func(pairs ...string) corev1.ResourceList {
		l := corev1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		return l
	}
	const (
		dom  = "spec.domain."
		disk = "spec.domain.devices.disks"
		ifc  = "spec.domain.devices.interfaces"
	)
	tests := []struct {
		name   string
		change spec
		want   []string
	}{
		{"a VMI that is right", func(*vmi.VirtualMachineInstanceSpec) {}, nil},
		{"a host name that is none", func(s *vmi.VirtualMachineInstanceSpec) { s.Hostname = "a.b" }, []string{"spec.hostname: FieldValueInvalid"}},
		{"a subdomain that is none", func(s *vmi.VirtualMachineInstanceSpec) { s.Subdomain = "-" }, []string{"spec.subdomain: FieldValueInvalid"}},
		{"the longest grace period", func(s *vmi.VirtualMachineInstanceSpec) { s.TerminationGracePeriodSeconds = new(int64(vmi.MostSeconds)) }, nil},
		{"a grace period beyond it", func(s *vmi.VirtualMachineInstanceSpec) { s.TerminationGracePeriodSeconds = new(int64(math.MaxInt64)) }, []string{"spec.terminationGracePeriodSeconds: FieldValueInvalid"}},
		{"a clock that is beyond a century", func(s *vmi.VirtualMachineInstanceSpec) {
			s.Domain.Clock = &vmi.Clock{ClockOffset: vmi.ClockOffset{UTC: &vmi.ClockUTC{OffsetSeconds: new(math.MinInt64)}}}
		}, []string{"spec.domain.clock.utc.offsetSeconds: FieldValueInvalid"}},
		{"a probe that waits for centuries", func(s *vmi.VirtualMachineInstanceSpec) {
			s.ReadinessProbe = &vmi.Probe{ProbeHandler: vmi.ProbeHandler{GuestAgentPing: &vmi.GuestAgentPing{}}, InitialDelaySeconds: math.MaxInt32, TimeoutSeconds: math.MaxInt32}
		}, []string{"spec.readinessProbe.initialDelaySeconds: FieldValueInvalid", "spec.readinessProbe.timeoutSeconds: FieldValueInvalid"}},
		{"a negative grace period", func(s *vmi.VirtualMachineInstanceSpec) { s.TerminationGracePeriodSeconds = new(int64(-1)) }, []string{"spec.terminationGracePeriodSeconds: FieldValueInvalid"}},
		{"a node selector that is none", func(s *vmi.VirtualMachineInstanceSpec) { s.NodeSelector = map[string]string{"a": "b c"} }, []string{"spec.nodeSelector[a]: FieldValueInvalid"}},

		{"memory by the request alone", func(s *vmi.VirtualMachineInstanceSpec) {
			s.Domain.Memory, s.Domain.Resources.Requests = nil, quantities("memory", "64Mi")
		}, nil},
		{"too little memory", func(s *vmi.VirtualMachineInstanceSpec) { s.Domain.Memory.Guest = new(resource.MustParse("1k")) }, []string{dom + "memory.guest: FieldValueInvalid"}},
		{"too little memory asked for", func(s *vmi.VirtualMachineInstanceSpec) { s.Domain.Resources.Requests = quantities("memory", "64") }, []string{dom + "resources.requests.memory: FieldValueInvalid"}},
		{"a guest larger than its limit", func(s *vmi.VirtualMachineInstanceSpec) { s.Domain.Resources.Limits = quantities("memory", "64Mi") }, []string{dom + "memory.guest: FieldValueInvalid"}},
		{"a guest larger than its limit that asks for less", func(s *vmi.VirtualMachineInstanceSpec) {
			s.Domain.Resources = vmi.ResourceRequirements{Requests: quantities("memory", "8Mi"), Limits: quantities("memory", "64Mi")}
		}, nil},
		{"requests above their limits", func(s *vmi.VirtualMachineInstanceSpec) {
			s.Domain.Resources = vmi.ResourceRequirements{Requests: quantities("memory", "2Gi", "cpu", "2"), Limits: quantities("memory", "1Gi", "cpu", "1")}
		}, []string{dom + "resources.requests.memory: FieldValueInvalid", dom + "resources.requests.cpu: FieldValueInvalid"}},
		{"negative amounts", func(s *vmi.VirtualMachineInstanceSpec) {
			s.Domain.Resources = vmi.ResourceRequirements{Requests: quantities("cpu", "-1"), Limits: quantities("cpu", "-1")}
		}, []string{dom + "resources.requests.cpu: FieldValueInvalid", dom + "resources.limits.cpu: FieldValueInvalid"}},
		{"more processors than a VMI has", func(s *vmi.VirtualMachineInstanceSpec) {
			s.Domain.CPU = &vmi.CPU{Cores: 1 << 31, Sockets: 1 << 31, Threads: 4}
		}, []string{dom + "cpu: FieldValueInvalid"}},

		{"two volumes of one name", func(s *vmi.VirtualMachineInstanceSpec) { s.Volumes[1].Name = "root" },
			[]string{"spec.volumes[1].name: FieldValueInvalid", disk + "[1].name: FieldValueInvalid"}},
		{"a volume without a source", func(s *vmi.VirtualMachineInstanceSpec) { s.Volumes[0].ContainerDisk = nil }, []string{"spec.volumes[0]: FieldValueInvalid"}},
		{"a volume with two sources", func(s *vmi.VirtualMachineInstanceSpec) { s.Volumes[0].EmptyDisk = s.Volumes[2].EmptyDisk }, []string{"spec.volumes[0]: FieldValueInvalid"}},
		{"a volume name that is none", func(s *vmi.VirtualMachineInstanceSpec) { s.Volumes[0].Name, disks(s)[0].Name = "A", "A" }, []string{disk + ".domain.devices.disks[0].name: FieldValueInvalid"}},
		{"a name that is none of a volume that no disk shows", func(s *vmi.VirtualMachineInstanceSpec) { s.Volumes[0].Name, s.Domain.Devices.Disks = "A", disks(s)[1:] }, []string{"spec.volumes[0].name: FieldValueInvalid"}},
		{"no image", func(s *vmi.VirtualMachineInstanceSpec) { s.Volumes[0].ContainerDisk.Image = "" }, []string{"spec.volumes[0].containerDisk.image: FieldValueRequired"}},
		{"an image with a space", func(s *vmi.VirtualMachineInstanceSpec) { s.Volumes[0].ContainerDisk.Image = " a" }, []string{"spec.volumes[0].containerDisk.image: FieldValueInvalid"}},
		{"a relative path", func(s *vmi.VirtualMachineInstanceSpec) { s.Volumes[0].ContainerDisk.Path = "disk/x" }, []string{"spec.volumes[0].containerDisk: FieldValueInvalid"}},
		{"a path that leads out", func(s *vmi.VirtualMachineInstanceSpec) { s.Volumes[0].ContainerDisk.Path = "/disk/../../etc" }, []string{"spec.volumes[0].containerDisk: FieldValueInvalid"}},
		{"a path that is the root", func(s *vmi.VirtualMachineInstanceSpec) { s.Volumes[0].ContainerDisk.Path = "//" }, []string{"spec.volumes[0].containerDisk: FieldValueInvalid"}},
		{"a file whose name has dots", func(s *vmi.VirtualMachineInstanceSpec) { s.Volumes[0].ContainerDisk.Path = "/disk/a..qcow2" }, nil},
		{"a secret name that is none", func(s *vmi.VirtualMachineInstanceSpec) { s.Volumes[0].ContainerDisk.ImagePullSecret = "A" }, []string{"spec.volumes[0].containerDisk.imagePullSecret: FieldValueInvalid"}},
		{"two cloud-init volumes", func(s *vmi.VirtualMachineInstanceSpec) {
			s.Volumes[2].VolumeSource = vmi.VolumeSource{CloudInitConfigDrive: &vmi.CloudInitConfigDrive{UserData: "a"}}
		}, []string{"spec.volumes: FieldValueInvalid"}},
		{"cloud-init without data", func(s *vmi.VirtualMachineInstanceSpec) { s.Volumes[1].CloudInitNoCloud = &vmi.CloudInitNoCloud{} }, []string{"spec.volumes[1].cloudInitNoCloud: FieldValueInvalid"}},
		{"user data in two forms", func(s *vmi.VirtualMachineInstanceSpec) { s.Volumes[1].CloudInitNoCloud.UserDataBase64 = "YQ==" }, []string{"spec.volumes[1].cloudInitNoCloud: FieldValueInvalid"}},
		{"user data in a Secret", func(s *vmi.VirtualMachineInstanceSpec) {
			s.Volumes[1].CloudInitNoCloud = &vmi.CloudInitNoCloud{UserDataSecretRef: &corev1.LocalObjectReference{Name: "seed"}, NetworkData: "version: 2"}
		}, nil},
		{"a name that no Secret has", func(s *vmi.VirtualMachineInstanceSpec) {
			s.Volumes[1].CloudInitNoCloud = &vmi.CloudInitNoCloud{NetworkDataSecretRef: &corev1.LocalObjectReference{Name: "a/b"}}
		}, []string{"spec.volumes[1].cloudInitNoCloud.networkDataSecretRef.name: FieldValueInvalid"}},
		{"a Secret without a name, and nothing else", func(s *vmi.VirtualMachineInstanceSpec) {
			s.Volumes[1].CloudInitNoCloud = &vmi.CloudInitNoCloud{UserDataSecretRef: &corev1.LocalObjectReference{}}
		}, []string{"spec.volumes[1].cloudInitNoCloud: FieldValueInvalid"}},
		{"user data in a Secret and in the spec of a ConfigDrive", func(s *vmi.VirtualMachineInstanceSpec) {
			s.Volumes[1].VolumeSource = vmi.VolumeSource{CloudInitConfigDrive: &vmi.CloudInitConfigDrive{UserData: "a", UserDataSecretRef: &corev1.LocalObjectReference{Name: "seed"}}}
		}, []string{"spec.volumes[1].cloudInitConfigDrive: FieldValueInvalid"}},
		{"data that is not base64", func(s *vmi.VirtualMachineInstanceSpec) { s.Volumes[1].CloudInitNoCloud.NetworkDataBase64 = "%" }, []string{"spec.volumes[1].cloudInitNoCloud.networkDataBase64: FieldValueInvalid"}},
		{"too much data", func(s *vmi.VirtualMachineInstanceSpec) {
			s.Volumes[1].CloudInitNoCloud = &vmi.CloudInitNoCloud{UserData: strings.Repeat("a", 2049), NetworkDataBase64: strings.Repeat("aaaa", 700)}
		}, []string{"spec.volumes[1].cloudInitNoCloud: FieldValueInvalid", "spec.volumes[1].cloudInitNoCloud: FieldValueInvalid"}},
		{"an empty disk beyond any node", func(s *vmi.VirtualMachineInstanceSpec) {
			s.Volumes[2].EmptyDisk.Capacity = resource.MustParse("2Pi")
		}, []string{"spec.volumes[2].emptyDisk.capacity: FieldValueInvalid"}},
		{"an empty disk without a size", func(s *vmi.VirtualMachineInstanceSpec) { s.Volumes[2].EmptyDisk.Capacity = resource.Quantity{} }, []string{"spec.volumes[2].emptyDisk.capacity: FieldValueInvalid"}},

		{"two disks of one name", func(s *vmi.VirtualMachineInstanceSpec) { s.Domain.Devices.Disks = append(disks(s), disks(s)[0]) }, []string{disk + "[3].name: FieldValueInvalid"}},
		{"a disk without a volume", func(s *vmi.VirtualMachineInstanceSpec) {
			s.Domain.Devices.Disks = append(disks(s), vmi.Disk{Name: "nowhere"})
		}, []string{disk + "[3].name: FieldValueInvalid"}},
		{"a bus that is none", func(s *vmi.VirtualMachineInstanceSpec) { disks(s)[0].Disk.Bus = "ide" }, []string{disk + "[0].disk.bus: FieldValueInvalid"}},
		{"a serial number that is none", func(s *vmi.VirtualMachineInstanceSpec) { disks(s)[0].Serial = "a b" }, []string{disk + "[0].serial: FieldValueInvalid"}},
		{"one boot order for two disks", func(s *vmi.VirtualMachineInstanceSpec) {
			disks(s)[0].BootOrder, disks(s)[1].BootOrder, disks(s)[2].BootOrder = new(uint(1)), new(uint(1)), new(uint(2))
		}, []string{disk + "[1].bootOrder: FieldValueInvalid"}},
		{"boot order 0", func(s *vmi.VirtualMachineInstanceSpec) { disks(s)[0].BootOrder = new(uint(0)) }, []string{disk + "[0].bootOrder: FieldValueInvalid"}},

		{"an interface without a network", func(s *vmi.VirtualMachineInstanceSpec) { s.Networks = nil }, []string{ifc + "[0].name: FieldValueInvalid"}},
		{"a network without an interface", func(s *vmi.VirtualMachineInstanceSpec) { s.Domain.Devices.Interfaces = nil }, []string{"spec.networks[0].name: FieldValueRequired"}},
		{"two pod networks", func(s *vmi.VirtualMachineInstanceSpec) {
			second := *nic(s)
			second.Name, second.Ports = "second", nil
			s.Domain.Devices.Interfaces = append(s.Domain.Devices.Interfaces, second)
			s.Networks = append(s.Networks, vmi.Network{Name: "second", NetworkSource: s.Networks[0].NetworkSource})
		}, []string{"spec.interfaces: FieldValueDuplicate"}},
		{"the same network and interface twice", func(s *vmi.VirtualMachineInstanceSpec) {
			s.Networks = append(s.Networks, s.Networks[0])
			s.Domain.Devices.Interfaces = append(s.Domain.Devices.Interfaces, *nic(s))
			nic(s).Ports = nil
		}, []string{"spec.networks[1].name: FieldValueDuplicate", "spec.interfaces: FieldValueDuplicate", ifc + "[1].name: FieldValueDuplicate"}},
		{"a network without a source", func(s *vmi.VirtualMachineInstanceSpec) { s.Networks[0].Pod = nil }, []string{"spec.networks[0]: FieldValueRequired", ifc + "[0].name: FieldValueInvalid"}},
		{"networks that are none", func(s *vmi.VirtualMachineInstanceSpec) {
			s.Networks[0].Pod = &vmi.PodNetwork{VMNetworkCIDR: "fd00::/64", VMIPv6NetworkCIDR: "x"}
		}, []string{"spec.networks[0].pod.vmNetworkCIDR: FieldValueInvalid", "spec.networks[0].pod.vmIPv6NetworkCIDR: FieldValueInvalid"}},
		{"whole CPUs, but how many", func(s *vmi.VirtualMachineInstanceSpec) { s.Domain.CPU = &vmi.CPU{DedicatedCPUPlacement: true} }, []string{"spec.domain.cpu.dedicatedCpuPlacement: FieldValueInvalid"}},
		{"networks without room", func(s *vmi.VirtualMachineInstanceSpec) {
			s.Networks[0].Pod = &vmi.PodNetwork{VMNetworkCIDR: "10.0.0.0/31", VMIPv6NetworkCIDR: "fd00::/127"}
		}, []string{"spec.networks[0].pod.vmNetworkCIDR: FieldValueInvalid", "spec.networks[0].pod.vmIPv6NetworkCIDR: FieldValueInvalid"}},
		{"two bindings", func(s *vmi.VirtualMachineInstanceSpec) { nic(s).Bridge = &vmi.InterfaceBridge{} }, []string{ifc + "[0]: FieldValueInvalid"}},
		{"a binding that is left to defaults", func(s *vmi.VirtualMachineInstanceSpec) { nic(s).Masquerade = nil }, nil},
		{"a plugin and a binding", func(s *vmi.VirtualMachineInstanceSpec) { nic(s).Binding = &vmi.PluginBinding{Name: "x"} }, []string{ifc + "[0].binding: FieldValueInvalid"}},
		{"a model that is none", func(s *vmi.VirtualMachineInstanceSpec) { nic(s).Model = "ne2000" }, []string{ifc + "[0].model: FieldValueNotSupported"}},
		{"a MAC address that is none", func(s *vmi.VirtualMachineInstanceSpec) { nic(s).MacAddress = "02:00" }, []string{ifc + "[0].macAddress: FieldValueInvalid"}},
		{"a MAC address of many", func(s *vmi.VirtualMachineInstanceSpec) { nic(s).MacAddress = "01-00-5E-00-00-01" }, []string{ifc + "[0].macAddress: FieldValueInvalid"}},
		{"no MAC address", func(s *vmi.VirtualMachineInstanceSpec) { nic(s).MacAddress = "00:00:00:00:00:00" }, []string{ifc + "[0].macAddress: FieldValueInvalid"}},
		{"the gateway's MAC address", func(s *vmi.VirtualMachineInstanceSpec) { nic(s).MacAddress = "02:00:00:00:00:00" }, []string{ifc + "[0].macAddress: FieldValueInvalid"}},
		{"a MAC address that is right", func(s *vmi.VirtualMachineInstanceSpec) { nic(s).MacAddress = "02:00:00:00:00:01" }, nil},
		{"ports that are none", func(s *vmi.VirtualMachineInstanceSpec) {
			nic(s).Ports = []vmi.Port{{Port: 0}, {Port: 80, Protocol: "SCTP"}, {Port: 81, Name: "A name"}}
		}, []string{ifc + "[0].ports[0].port: FieldValueRequired", ifc + "[0].ports[1].protocol: FieldValueInvalid", ifc + "[0].ports[2].name: FieldValueInvalid"}},
		{"one name for two ports", func(s *vmi.VirtualMachineInstanceSpec) {
			nic(s).Ports = []vmi.Port{{Name: "http", Port: 80}, {Name: "http", Port: 81}}
		}, []string{ifc + "[0].ports[1].name: FieldValueDuplicate"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, faults(tt.change))
		})
	}
}

func ExampleSpec() {
	v := vmitest.New()
	v.Spec.EvictionStrategy = new(vmi.EvictionStrategy("Never"))
	v.Spec.Domain.Devices.Disks = []vmi.Disk{{Name: "root"}}
	for _, fault := range validate.Spec(field.NewPath("spec"), &v.Spec, validate.Limits{}) {
		fmt.Println(fault)
	}
	// Output:
	// spec.evictionStrategy: Invalid value: "Never": must be None, LiveMigrate, LiveMigrateIfPossible or External
	// spec.domain.devices.disks[0].name: Invalid value: "root": there is no volume of this name: add one to volumes, or remove the disk
}
