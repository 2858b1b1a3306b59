package pod_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/internal/golden"
	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/network/cni"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

var config = pod.Config{Launcher: pod.Launcher{Image: "example/virt-launcher:v1"}}

// with changes the VMI in a way that vmitest has no option for.
func with(f func(*vmi.VirtualMachineInstance)) vmitest.Option { return f }

func TestRender(t *testing.T) {
	t.Parallel()
	emulated, copied, everything := config, config, config
	emulated.AllowEmulation = true
	copied.ContainerDisks = pod.InitCopy
	claimed, sockets, permitted, attached, target := config, config, config, config, config
	target.Role = pod.Target(migration)
	sockets.Cluster.Limits.Features.VSOCK = true
	permitted.Cluster.Limits.Features.SEV = true
	claimed.Facts.Claims = map[string]*corev1.PersistentVolumeClaim{"data": {}, "filled": {}, "device": {Spec: corev1.PersistentVolumeClaimSpec{VolumeMode: new(corev1.PersistentVolumeBlock)}}}
	everything.ImagePullPolicy, everything.Architecture = corev1.PullAlways, "arm64"
	red := &cni.Definition{Resource: "example.com/red"}
	attached.Facts.Networks = map[string]*cni.Definition{"red": red, "green": red, "lan": {Resource: "example.com/lan"},
		"blue": {Resource: "example.com/blue"}, "gone": {Resource: "example.com/blue"}}
	tests := []struct {
		name     string
		config   pod.Config
		instance *vmi.VirtualMachineInstance
	}{
		{"minimal", config, vmitest.New()},
		{"fail-fast", config, vmitest.New(with(func(v *vmi.VirtualMachineInstance) { v.Annotations = map[string]string{vmi.FailFastAnnotation: "true"} }))},
		{"container-disk", config, vmitest.New(vmitest.WithContainerDisk("root", "example/fedora:40"))},
		{"container-disk-copied", copied, vmitest.New(
			vmitest.WithContainerDisk("root", "example/fedora:40"),
			vmitest.WithDisk("data", vmi.VolumeSource{ContainerDisk: &vmi.ContainerDisk{Image: "example/data", Path: "/images/data.qcow2"}}))},
		{"masquerade-ports", config, vmitest.New(vmitest.WithMasquerade("default",
			vmi.Port{Name: "http", Port: 80}, vmi.Port{Protocol: "UDP", Port: 53}))},
		{"multus", config, vmitest.New(vmitest.WithMasquerade("default"), vmitest.WithMultus("lan", "lan"), vmitest.WithMultus("san", "infra/san"),
			with(func(v *vmi.VirtualMachineInstance) {
				v.Spec.Domain.Devices.Interfaces[1].MacAddress = "02:00:00:00:00:07"
				// Only Multus says what it has attached.
				v.Annotations = map[string]string{"k8s.v1.cni.cncf.io/network-status": `[{"name": "forged"}]`, "k8s.v1.cni.cncf.io/networks": "forged"}
			}))},
		{"sriov", attached, vmitest.New(vmitest.WithMasquerade("default"), vmitest.WithMultus("red", "infra/red"), vmitest.WithMultus("blue", "blue"),
			vmitest.WithMultus("green", "infra/red"), vmitest.WithMultus("lan", "lan"), vmitest.WithMultus("gone", "blue"), with(func(v *vmi.VirtualMachineInstance) {
				for _, n := range []int{1, 2, 3} {
					v.Spec.Domain.Devices.Interfaces[n].InterfaceBinding = vmi.InterfaceBinding{SRIOV: &vmi.InterfaceSRIOV{}}
				}
				v.Spec.Domain.Devices.Interfaces[5].State = vmi.InterfaceAbsent
				// What the user asks for counts.
				v.Spec.Domain.Resources.Limits = corev1.ResourceList{"example.com/red": resource.MustParse("1"), "example.com/lan": resource.MustParse("3")}
			}))},
		{"cloud-init-secrets", config, vmitest.New(vmitest.WithDisk("seed", vmi.VolumeSource{CloudInitConfigDrive: &vmi.CloudInitConfigDrive{
			UserDataSecretRef: &corev1.LocalObjectReference{Name: "users"}, NetworkDataSecretRef: &corev1.LocalObjectReference{Name: "networks"},
		}}))},
		{"filesystems", config, vmitest.New(shared("data", inClaim("claim")),
			shared("conf", vmi.VolumeSource{ConfigMap: &vmi.ConfigMapVolume{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}),
			shared("keys", vmi.VolumeSource{Secret: &vmi.SecretVolume{SecretName: "keys"}}),
			shared("token", vmi.VolumeSource{ServiceAccount: &vmi.ServiceAccountVolume{ServiceAccountName: "robot"}}),
			shared("facts", vmi.VolumeSource{DownwardAPI: &vmi.DownwardAPIVolume{Fields: []corev1.DownwardAPIVolumeFile{{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}}}}}),
			with(func(v *vmi.VirtualMachineInstance) { // a disk too
				v.Spec.Domain.Devices.Disks = append(v.Spec.Domain.Devices.Disks, vmi.Disk{Name: "conf"})
			}))},
		{"credentials", config, vmitest.New(vmitest.WithCloudInit("access-credentials-0", "#!/bin/sh"), with(func(v *vmi.VirtualMachineInstance) {
			from := func(name string) *vmi.CredentialSecret { return &vmi.CredentialSecret{SecretName: name} }
			v.Spec.AccessCredentials = []vmi.AccessCredential{
				{SSHPublicKey: &vmi.SSHPublicKeyCredential{Source: vmi.SSHPublicKeySource{Secret: from("team.keys")},
					PropagationMethod: vmi.SSHPublicKeyPropagationMethod{NoCloud: &vmi.CloudInitPropagation{}}}},
				{SSHPublicKey: &vmi.SSHPublicKeyCredential{Source: vmi.SSHPublicKeySource{Secret: from("team.keys")},
					PropagationMethod: vmi.SSHPublicKeyPropagationMethod{QemuGuestAgent: &vmi.AgentUsersPropagation{Users: []string{"admin"}}}}},
				{UserPassword: &vmi.UserPasswordCredential{Source: vmi.UserPasswordSource{Secret: from("passwords")},
					PropagationMethod: vmi.UserPasswordPropagationMethod{QemuGuestAgent: &vmi.AgentPropagation{}}}},
			}
		}))},
		{"probes", config, vmitest.New(vmitest.WithMasquerade("default", vmi.Port{Name: "http", Port: 80}), with(func(v *vmi.VirtualMachineInstance) {
			v.Spec.ReadinessProbe = &vmi.Probe{
				ProbeHandler:        vmi.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromString("http")}},
				InitialDelaySeconds: 5, PeriodSeconds: 3, SuccessThreshold: 2,
			}
			v.Spec.LivenessProbe = &vmi.Probe{ProbeHandler: vmi.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(22)}}, FailureThreshold: 5}
		}))},
		{"probes-agent", config, vmitest.New(with(func(v *vmi.VirtualMachineInstance) {
			v.Spec.ReadinessProbe = &vmi.Probe{ProbeHandler: vmi.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", `test "$(cat /run/ready)" = yes`}}}, TimeoutSeconds: 5}
			v.Spec.LivenessProbe = &vmi.Probe{ProbeHandler: vmi.ProbeHandler{GuestAgentPing: &vmi.GuestAgentPing{}}}
		}))},
		{"probes-liveness", config, vmitest.New(vmitest.WithMasquerade("default"), with(func(v *vmi.VirtualMachineInstance) {
			v.Spec.LivenessProbe = &vmi.Probe{
				ProbeHandler: vmi.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
					Path: "/healthz", Port: intstr.FromInt32(8443), Scheme: corev1.URISchemeHTTPS, HTTPHeaders: []corev1.HTTPHeader{{Name: "X-Probe", Value: "liveness"}},
				}},
				InitialDelaySeconds: 30, TimeoutSeconds: 4, PeriodSeconds: 7, FailureThreshold: 6,
			}
			v.Spec.ReadinessProbe = &vmi.Probe{ProbeHandler: vmi.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
				Port: intstr.FromInt32(8443), Scheme: corev1.URISchemeHTTPS, HTTPHeaders: []corev1.HTTPHeader{{Name: "X-Probe", Value: "readiness"}},
			}}, TimeoutSeconds: 3, FailureThreshold: 9}
		}))},
		{"probes-target", target, vmitest.New(vmitest.WithMasquerade("default"), with(func(v *vmi.VirtualMachineInstance) {
			v.Spec.LivenessProbe = &vmi.Probe{ProbeHandler: vmi.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(22)}}}
			v.Spec.ReadinessProbe = &vmi.Probe{ProbeHandler: vmi.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}}, InitialDelaySeconds: 30}
		}))},
		{"start-paused", config, vmitest.New(with(func(v *vmi.VirtualMachineInstance) { v.Spec.StartStrategy = new(vmi.StartPaused) }))},
		{"claims", claimed, vmitest.New(
			vmitest.WithDisk("data", vmi.VolumeSource{PersistentVolumeClaim: claimOf("data")}),
			vmitest.WithDisk("kvm", vmi.VolumeSource{PersistentVolumeClaim: claimOf("device")}),
			vmitest.WithDisk("filled", vmi.VolumeSource{DataVolume: &vmi.DataVolumeVolume{Name: "filled"}}),
			with(func(v *vmi.VirtualMachineInstance) {
				v.Spec.Domain.Devices.Disks[0].Disk = &vmi.DiskTarget{Bus: vmi.DiskBusVirtio}
				v.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = true
			}))},
		{"ephemeral", claimed, vmitest.New(
			vmitest.WithDisk("data", vmi.VolumeSource{Ephemeral: &vmi.EphemeralVolume{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}),
			vmitest.WithDisk("device", vmi.VolumeSource{Ephemeral: &vmi.EphemeralVolume{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "device"}}}))},
		{"files", config, vmitest.New(
			vmitest.WithDisk("config", vmi.VolumeSource{ConfigMap: &vmi.ConfigMapVolume{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Optional: new(true)}}),
			vmitest.WithDisk("keys", vmi.VolumeSource{Secret: &vmi.SecretVolume{SecretName: "keys"}}),
			vmitest.WithDisk("facts", vmi.VolumeSource{DownwardAPI: &vmi.DownwardAPIVolume{Fields: []corev1.DownwardAPIVolumeFile{
				{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}, Mode: new(int32(0o400))},
				{Path: "memory", ResourceFieldRef: &corev1.ResourceFieldSelector{ContainerName: "compute", Resource: "requests.memory", Divisor: resource.MustParse("1Mi")}},
			}}}),
			vmitest.WithDisk("token", vmi.VolumeSource{ServiceAccount: &vmi.ServiceAccountVolume{ServiceAccountName: "robot"}}),
			vmitest.WithDisk("answers", vmi.VolumeSource{Sysprep: &vmi.Sysprep{ConfigMap: &corev1.LocalObjectReference{Name: "answers"}}}),
			vmitest.WithDisk("secret-answers", vmi.VolumeSource{Sysprep: &vmi.Sysprep{Secret: &corev1.LocalObjectReference{Name: "answers"}}}))},
		{"service-account", config, vmitest.New(with(func(v *vmi.VirtualMachineInstance) { v.Spec.ServiceAccountName = "robot" }))},
		{"kernel-boot", config, vmitest.New(with(kernelBoot))},
		{"kernel-boot-copied", copied, vmitest.New(vmitest.WithContainerDisk("kernel-boot", "example/fedora:40"), with(kernelBoot))},
		{"persistent-state", config, vmitest.New(with(func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.Features = &vmi.Features{SMM: &vmi.FeatureState{}}
			v.Spec.Domain.Firmware = &vmi.Firmware{Bootloader: &vmi.Bootloader{EFI: &vmi.EFI{Persistent: new(true)}}}
			v.Spec.Domain.Devices.TPM = &vmi.TPM{Persistent: new(true)}
		}))},
		{"sev", permitted, vmitest.New(with(func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.Firmware = &vmi.Firmware{Bootloader: &vmi.Bootloader{EFI: &vmi.EFI{SecureBoot: new(false)}}}
			v.Spec.Domain.LaunchSecurity = &vmi.LaunchSecurity{SEV: &vmi.SEV{Policy: &vmi.SEVPolicy{EncryptedState: new(true)}}}
		}))},
		{"emulation", emulated, vmitest.New(vmitest.WithBridge("default"))},
		{"vsock", sockets, vmitest.New(with(func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Devices.AutoattachVSOCK = new(true) }))},
		{"requests-and-limits", config, vmitest.New(with(func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.Resources = vmi.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi"), "example.com/fpga": resource.MustParse("1")},
				Limits: corev1.ResourceList{
					corev1.ResourceMemory: resource.MustParse("256Mi"), corev1.ResourceCPU: resource.MustParse("2"),
					"example.com/fpga": resource.MustParse("1"), "hugepages-2Mi": resource.MustParse("4Mi"), "ephemeral-storage": resource.MustParse("20M"),
				},
			}
		}))},
		{"everything", everything, vmitest.New(
			vmitest.WithName("everything"), vmitest.WithMemory("1Gi"), vmitest.WithCores(4), vmitest.WithGracePeriod(0),
			vmitest.WithContainerDisk("root", "example/fedora:40"), vmitest.WithCloudInit("cloudinit", "#!/bin/sh\n"), vmitest.WithEmptyDisk("scratch", "1Gi"),
			vmitest.WithMasquerade("default", vmi.Port{Name: "http", Port: 80}),
			with(func(v *vmi.VirtualMachineInstance) {
				v.Labels = map[string]string{"app": "web", "kubevirt.io": "mine"}
				v.Annotations = map[string]string{"example.com/note": "kept", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
				v.Spec.Volumes[0].ContainerDisk.ImagePullSecret = "registry"
				v.Spec.Volumes[0].ContainerDisk.ImagePullPolicy = corev1.PullNever
				v.Spec.Hostname, v.Spec.Subdomain = "web", "vmis"
				v.Spec.NodeSelector = map[string]string{"disk": "fast"}
				v.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
				v.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
						LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, TopologyKey: "kubernetes.io/hostname",
					}},
				}}
				v.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
					MaxSkew: 1, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: corev1.ScheduleAnyway,
				}}
				v.Spec.SchedulerName, v.Spec.PriorityClassName = "other", "important"
				v.Spec.DNSPolicy = corev1.DNSNone
				v.Spec.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"192.0.2.53"}, Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: new("2")}}}
			}))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before := tt.instance.DeepCopy()
			p, err := pod.Render(tt.instance, tt.config)
			require.NoError(t, err)
			require.Equal(t, before, tt.instance, "the input is not changed")
			out, err := yaml.Marshal(p)
			require.NoError(t, err)
			golden.Equal(t, "testdata/"+tt.name+".yaml", out)
		})
	}
}

func claimOf(name string) *vmi.PersistentVolumeClaimVolume {
	return &vmi.PersistentVolumeClaimVolume{PersistentVolumeClaimVolumeSource: corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
}

func TestTwoVolumesInOneClaimAreRefused(t *testing.T) {
	t.Parallel()
	_, err := pod.Render(vmitest.New(
		vmitest.WithDisk("a", vmi.VolumeSource{PersistentVolumeClaim: claimOf("data")}),
		vmitest.WithDisk("b", vmi.VolumeSource{DataVolume: &vmi.DataVolumeVolume{Name: "data"}})), config)
	require.ErrorIs(t, err, vmi.ErrInvalid)
	require.ErrorContains(t, err, "volume b: claim data is that of volume a too")
}

func TestAReadOnlyClaimNeedsABusWithReadOnlyDisks(t *testing.T) {
	t.Parallel()
	c := claimOf("data")
	c.ReadOnly = true
	_, err := pod.Render(vmitest.New(vmitest.WithDisk("a", vmi.VolumeSource{PersistentVolumeClaim: c}), with(func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Devices.Disks[0].Disk = &vmi.DiskTarget{Bus: vmi.DiskBusSATA}
	})), config)
	require.ErrorIs(t, err, vmi.ErrInvalid)
	require.ErrorContains(t, err, "spec.domain.devices.disks[0].disk.bus")
}

func TestRenderNamesEveryFault(t *testing.T) {
	t.Parallel()
	_, err := pod.Render(vmitest.New(with(func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Memory = nil
		v.Spec.Domain.Devices.Disks = []vmi.Disk{{Name: "nowhere"}}
	})), config)
	require.ErrorIs(t, err, vmi.ErrInvalid)
	require.ErrorContains(t, err, "spec.domain.memory.guest")
	require.ErrorContains(t, err, "spec.domain.devices.disks[0].name")
}

func TestNamesFitWhereTheyAreUsed(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, instance string }{
		{"a short name", "a"},
		{"the longest name of a label", strings.Repeat("a", 63)},
		{"a name with dots", "a.b.c"},
		{"a name whose 63rd character is a hyphen", strings.Repeat("a", 62) + "-" + strings.Repeat("b", 20)},
		{"the longest name of an object", strings.Repeat("a", 199) + "." + strings.Repeat("b", 53)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, err := pod.Render(vmitest.New(vmitest.WithName(tt.instance)), config)
			require.NoError(t, err)
			require.Empty(t, validation.IsDNS1123Subdomain(p.Name))
			require.Empty(t, validation.IsDNS1123Label(p.Spec.Hostname))
			require.Equal(t, tt.instance, launched.InstanceName(p), "the whole name is in the pod")
			folder := strings.Repeat("n", 63) + "_" + p.Name + "_11111111-1111-4111-8111-111111111111"
			require.LessOrEqual(t, len(folder), 255, "the kubelet's folder of the pod's log")
			require.NotEmpty(t, p.Labels)
			for k, v := range p.Labels {
				require.Empty(t, validation.IsValidLabelValue(v), k)
			}
		})
	}
}

func TestNameBelongsToOneVMI(t *testing.T) {
	t.Parallel()
	a, b := vmitest.New(), vmitest.New()
	require.Equal(t, pod.Name(a), pod.Name(b), "the same VMI has the same pod")
	b.UID = "22222222-2222-4222-8222-222222222222"
	require.NotEqual(t, pod.Name(a), pod.Name(b), "a later VMI of the same name has another")
	p, err := pod.Render(a, config)
	require.NoError(t, err)
	require.True(t, launched.Owned(p, a))
	require.False(t, launched.Owned(p, b))
}

func TestANameUpTo134CharactersIsWholeInThePodsName(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("a", 134)
	require.Contains(t, pod.Name(vmitest.New(vmitest.WithName(name))), "virt-launcher-"+name+"-")
	require.Contains(t, pod.Name(vmitest.New(vmitest.WithName(name+"b"))), "virt-launcher-"+name+"-")
}

func TestAPodIsKnownByItsOwnerOrByItsLabels(t *testing.T) {
	t.Parallel()
	v := vmitest.New()
	another := vmitest.New()
	another.UID = "22222222-2222-4222-8222-222222222222"
	for name, tt := range map[string]struct {
		change                    func(*corev1.Pod)
		owned, madeFor, adoptable bool
		instance                  string
	}{
		"as it was rendered":          {func(*corev1.Pod) {}, true, true, true, v.Name},
		"orphaned":                    {func(p *corev1.Pod) { p.OwnerReferences = nil }, false, true, false, v.Name},
		"without labels":              {func(p *corev1.Pod) { p.Labels = nil }, true, true, false, v.Name},
		"with the UID of another VMI": {func(p *corev1.Pod) { p.Labels[vmi.CreatedByLabel] = "x" }, true, true, false, v.Name},
		"without both":                {func(p *corev1.Pod) { p.Labels, p.OwnerReferences = nil, nil }, false, false, false, ""},
		"orphaned, with the UID and no launcher": {func(p *corev1.Pod) {
			p.OwnerReferences = nil
			delete(p.Labels, vmi.AppLabel)
		}, false, false, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := pod.Render(v, config)
			require.NoError(t, err)
			tt.change(p)
			require.Equal(t, []bool{tt.owned, tt.madeFor, tt.adoptable}, []bool{launched.Owned(p, v), launched.MadeFor(p, v), launched.Adoptable(p, v)})
			require.False(t, launched.Owned(p, another) || launched.MadeFor(p, another) || launched.Adoptable(p, another))
			require.Equal(t, tt.instance, launched.InstanceName(p))
		})
	}
	require.False(t, launched.MadeFor(&corev1.Pod{}, &vmi.VirtualMachineInstance{}), "neither has a UID")
}

func TestOverhead(t *testing.T) {
	t.Parallel()
	mib := func(m pod.Guest) int64 { o := pod.Overhead(m); return o.Value() >> 20 }
	require.Equal(t, mib(pod.Guest{VCPUs: 1})+128, mib(pod.Guest{VCPUs: 1, Architecture: "arm64"}), "the flash of UEFI")
	parts := func(names ...string) map[string]int64 {
		all := map[string]int64{}
		for _, t := range vmi.Traits() {
			if slices.Contains(names, t.Part) {
				all[t.Part] = t.MemoryBytes
			}
		}
		require.Len(t, all, len(names))
		return all
	}
	screen := parts("devices.autoattachGraphicsDevice")
	small := pod.Guest{Memory: resource.MustParse("128Mi"), VCPUs: 1, PartBytes: screen}
	big := pod.Guest{Memory: resource.MustParse("64Gi"), VCPUs: 1, PartBytes: screen}
	wide := pod.Guest{Memory: resource.MustParse("128Mi"), VCPUs: 8, PartBytes: screen}
	emulated := pod.Guest{Memory: resource.MustParse("128Mi"), VCPUs: 1, PartBytes: screen, Emulated: true}
	require.Equal(t, int64(109), mib(small))
	require.Equal(t, int64(108+128), mib(big), "a 512th of the guest's memory maps it")
	require.Equal(t, int64(109+7*4), mib(wide))
	require.Equal(t, int64(109+40), mib(emulated))
	require.Equal(t, int64(93), mib(pod.Guest{Memory: resource.MustParse("128Mi"), VCPUs: 1}), "without a screen")
	all := pod.Guest{Memory: resource.MustParse("128Mi"), VCPUs: 1, IOThreads: 3, ProcessProbes: 1,
		PartBytes: parts("devices.autoattachGraphicsDevice", "firmware.bootloader.efi", "devices.tpm", "devices.hostDevices")}
	require.Equal(t, int64(109+8+8+1024+3*2+8), mib(all))
}

// resourcesOf are what the compute container of a VMI asks for, and its limits.
func resourcesOf(t *testing.T, change func(*vmi.VirtualMachineInstance)) (requests, limits map[string]string, p *corev1.Pod) {
	t.Helper()
	p, err := pod.Render(vmitest.New(vmitest.WithMemory("512Mi"), with(change)), config)
	require.NoError(t, err)
	text := func(l corev1.ResourceList) map[string]string {
		out := map[string]string{}
		for k, q := range l {
			if k == corev1.ResourceCPU || k == corev1.ResourceMemory || strings.HasPrefix(string(k), "hugepages-") {
				out[string(k)] = q.String()
			}
		}
		return out
	}
	r := p.Spec.Containers[0].Resources
	return text(r.Requests), text(r.Limits), p
}

func TestAGuestOfHugePagesAsksForThemAndForNoOtherMemoryOfItsOwn(t *testing.T) {
	t.Parallel()
	requests, limits, _ := resourcesOf(t, func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Memory.Hugepages = &vmi.Hugepages{PageSize: "2048Ki"}
		v.Spec.Domain.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
	})
	require.Equal(t, map[string]string{"cpu": "100m", "memory": "109Mi", "hugepages-2Mi": "512Mi"}, requests)
	require.Equal(t, map[string]string{"memory": "109Mi", "hugepages-2Mi": "512Mi"}, limits)
}

func TestOvercommittedOverheadIsInTheLimitOnly(t *testing.T) {
	t.Parallel()
	requests, limits, _ := resourcesOf(t, func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Resources.OvercommitGuestOverhead = true
		v.Spec.Domain.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")}
	})
	require.Equal(t, "512Mi", requests["memory"])
	require.Equal(t, "621Mi", limits["memory"])
}

func TestDedicatedCPUsAreWholeOnesInAPodWhoseRequestsAreItsLimits(t *testing.T) {
	t.Parallel()
	copied := config
	copied.ContainerDisks = pod.InitCopy
	p, err := pod.Render(vmitest.New(vmitest.WithMemory("512Mi"), vmitest.WithContainerDisk("root", "example/fedora:40"), with(func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.CPU = &vmi.CPU{Cores: 2, Threads: 2, DedicatedCPUPlacement: true, IsolateEmulatorThread: true}
	})), copied)
	require.NoError(t, err)
	require.Equal(t, "true", p.Spec.NodeSelector["kubevirt.io/cpumanager"])
	cpu := p.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU]
	require.Equal(t, "5", cpu.String(), "one more for QEMU's own work")
	require.NotEmpty(t, p.Spec.InitContainers)
	for _, c := range append(p.Spec.InitContainers, p.Spec.Containers...) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			require.Equal(t, c.Resources.Requests[name], c.Resources.Limits[name], "%s of %s: the pod would not be Guaranteed", name, c.Name)
		}
	}
}

func TestTheProcessorOfAGuestSelectsItsNode(t *testing.T) {
	t.Parallel()
	obsolete := corev1.NodeSelectorRequirement{Key: "node-labeller.kubevirt.io/obsolete-host-model", Operator: corev1.NodeSelectorOpDoesNotExist}
	forbidden := corev1.NodeSelectorRequirement{Key: "cpu-feature.node.kubevirt.io/vmx", Operator: corev1.NodeSelectorOpDoesNotExist}
	zone := corev1.NodeSelectorRequirement{Key: "zone", Operator: corev1.NodeSelectorOpExists}
	features := []vmi.CPUFeature{{Name: "aes"}, {Name: "pcid", Policy: vmi.CPUFeatureRequire}, {Name: "vmx", Policy: vmi.CPUFeatureForbid},
		{Name: "x", Policy: vmi.CPUFeatureForce}, {Name: "y", Policy: vmi.CPUFeatureOptional}, {Name: "z", Policy: vmi.CPUFeatureDisable}}
	for name, tt := range map[string]struct {
		cpu      vmi.CPU
		emulated bool
		terms    []corev1.NodeSelectorTerm // of the VMI
		labels   map[string]string
		want     []corev1.NodeSelectorTerm
	}{
		"the default":           {want: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{obsolete}}}},
		"the default, emulated": {emulated: true},
		"the node's own":        {cpu: vmi.CPU{Model: vmi.CPUModelPassthrough}},
		"a model":               {cpu: vmi.CPU{Model: "Haswell"}, labels: map[string]string{"cpu-model.node.kubevirt.io/Haswell": "true"}},
		"a model, emulated":     {cpu: vmi.CPU{Model: "Penryn"}, emulated: true, labels: map[string]string{"cpu-model.node.kubevirt.io/Penryn": "true"}},
		"features": {cpu: vmi.CPU{Model: "Haswell", Features: features},
			labels: map[string]string{"cpu-model.node.kubevirt.io/Haswell": "true", "cpu-feature.node.kubevirt.io/aes": "true", "cpu-feature.node.kubevirt.io/pcid": "true"},
			want:   []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{forbidden}}}},
		"each term of the user's": {terms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{zone}}, {}},
			want: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{zone, obsolete}}, {}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := config
			c.AllowEmulation = tt.emulated
			p, err := pod.Render(vmitest.New(with(func(v *vmi.VirtualMachineInstance) {
				v.Spec.Domain.CPU = &tt.cpu
				if tt.terms != nil {
					v.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
						RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: tt.terms}}}
				}
			})), c)
			require.NoError(t, err)
			labels := map[string]string{}
			for k, v := range p.Spec.NodeSelector {
				if strings.HasPrefix(k, "cpu-") {
					labels[k] = v
				}
			}
			if tt.labels == nil {
				tt.labels = map[string]string{}
			}
			require.Equal(t, tt.labels, labels)
			if tt.want == nil {
				require.Nil(t, p.Spec.Affinity)
				return
			}
			require.Equal(t, tt.want, p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms)
		})
	}
}

func TestAPodSaysItsOverhead(t *testing.T) {
	t.Parallel()
	p, err := pod.Render(vmitest.New(), config)
	require.NoError(t, err)
	require.Equal(t, "109Mi", launched.MemoryOverhead(p).String())
	for _, odd := range []string{"", "much", "-1"} {
		p.Annotations["kubevirt.io/memory-overhead-bytes"] = odd
		require.Nil(t, launched.MemoryOverhead(p), odd)
	}
}

func TestAConfigMayReplaceTheOverhead(t *testing.T) {
	t.Parallel()
	c := config
	c.Overhead = func(pod.Guest) resource.Quantity { return resource.MustParse("1Gi") }
	p, err := pod.Render(vmitest.New(), c)
	require.NoError(t, err)
	memory := p.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory]
	require.Equal(t, "1152Mi", memory.String())
}

// The scheduler adds up what pods ask for in 64 bits, and the memory of a node in bytes;
// where the sum overflows, a pod fits everywhere.
func TestTheMostThatAVMICanAskForDoesNotOverflow(t *testing.T) {
	t.Parallel()
	c := config
	c.Cluster.Pods.OverheadRatio, c.Cluster.Pods.MemoryOvercommit, c.Cluster.Pods.CPUAllocationRatio = 10, 10, 1
	v := vmitest.New(vmitest.WithMemory("512Ti"))
	p, err := pod.Render(v, c)
	require.NoError(t, err)
	asked := p.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory]
	require.Equal(t, "512Ti", asked.String(), "which no node has")
	require.Equal(t, asked.Value()*1000, asked.MilliValue(), "no rounding to the largest number")
	require.Positive(t, asked.Value()*1000, "no overflow")
	require.Less(t, asked.Value(), int64(math.MaxInt64/1000))

	for _, guest := range []*vmi.VirtualMachineInstance{
		vmitest.New(vmitest.WithMemory("1Ei")),
		vmitest.New(func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.Memory = &vmi.Memory{Guest: new(resource.MustParse("1Ei")), Hugepages: &vmi.Hugepages{PageSize: "2Mi"}}
			v.Spec.Domain.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Ei")}
		}),
	} {
		p, err := pod.Render(guest, c)
		require.NoError(t, err, "the scheduler says that no node has it")
		r := p.Spec.Containers[0].Resources
		for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
			for name, q := range list {
				require.LessOrEqual(t, q.Value(), int64(512)<<40, name)
			}
		}
		if guest.Spec.Domain.Memory.Hugepages == nil {
			memory := r.Requests[corev1.ResourceMemory]
			require.Equal(t, "512Ti", memory.String())
		}
	}
}

func kernelBoot(v *vmi.VirtualMachineInstance) {
	v.Spec.Domain.Firmware = &vmi.Firmware{KernelBoot: &vmi.KernelBoot{KernelArgs: "quiet", Container: &vmi.KernelBootContainer{
		Image: "example/kernel:1", KernelPath: "/boot/vmlinuz", InitrdPath: "/boot/initrd", ImagePullSecret: "registry",
	}}}
}

func TestDevicesOfTheNodeNeedThePermissionOfTheCluster(t *testing.T) {
	t.Parallel()
	v := vmitest.New(with(func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Devices.GPUs = []vmi.GPU{{Name: "a", DeviceName: "example.com/gpu"}, {Name: "b", DeviceName: "example.com/gpu"}}
		v.Spec.Domain.Devices.HostDevices = []vmi.HostDevice{{Name: "c", DeviceName: "example.com/qat"}}
	}))
	c := config
	c.Cluster.Limits.Features.HostDevices = true
	c.Cluster.Pods.HostDevices = map[string]bool{"example.com/gpu": true}
	_, err := pod.Render(v, c)
	require.ErrorIs(t, err, vmi.ErrInvalid)
	require.EqualError(t, err, "invalid: spec.domain.devices.hostDevices[0].deviceName: Forbidden: the cluster's configuration does not permit example.com/qat: "+
		"name it in spec.configuration.permittedHostDevices of the KubeVirt, or name one that is there")
	c.Cluster.Pods.HostDevices["example.com/qat"] = true
	p, err := pod.Render(v, c)
	require.NoError(t, err)
	limits := p.Spec.Containers[0].Resources.Limits
	gpus, qats := limits["example.com/gpu"], limits["example.com/qat"]
	require.Equal(t, "2", gpus.String())
	require.Equal(t, "1", qats.String())
	overhead := launched.MemoryOverhead(p)
	require.Greater(t, overhead.Value(), int64(1<<30))
}

func TestTheResourceOfANetworkIsOneOfADevicePlugin(t *testing.T) {
	t.Parallel()
	c := config
	c.Facts.Networks = map[string]*cni.Definition{"fast": {Resource: "memory"}}
	_, err := pod.Render(vmitest.New(vmitest.WithMultus("fast", "infra/fast")), c)
	require.ErrorIs(t, err, vmi.ErrInvalid)
	require.ErrorContains(t, err, `spec.networks[0].multus.networkName: Invalid value: "fast": the annotation k8s.v1.cni.cncf.io/resourceName of the NetworkAttachmentDefinition is wrong: "memory" is no resource`)
}

// A resource can be asked for as a pod asks for it: by its name.
func TestAnInterfaceOfTheNodeNeedsNoTapDevice(t *testing.T) {
	t.Parallel()
	v := vmitest.New(vmitest.WithMultus("fast", "infra/fast"), with(func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Devices.Interfaces[0].InterfaceBinding = vmi.InterfaceBinding{SRIOV: &vmi.InterfaceSRIOV{}}
		v.Spec.Domain.Resources.Limits = corev1.ResourceList{"example.com/function": resource.MustParse("1")}
	}))
	p, err := pod.Render(v, config)
	require.NoError(t, err)
	limits := p.Spec.Containers[0].Resources.Limits
	require.Contains(t, limits, corev1.ResourceName("example.com/function"))
	require.NotContains(t, limits, corev1.ResourceName(vmi.TunResource))
	require.NotContains(t, limits, corev1.ResourceName(vmi.VhostNetResource))
	require.Contains(t, p.Annotations["k8s.v1.cni.cncf.io/networks"], `"name":"fast","namespace":"infra"`)
	overhead := launched.MemoryOverhead(p)
	require.Greater(t, overhead.Value(), int64(1<<30), "the guest's memory is mapped into the tables of the IOMMU")
}
