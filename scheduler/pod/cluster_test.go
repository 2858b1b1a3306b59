package pod_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	cluster "github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/validate"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestThePodIsAsTheClusterIsConfigured(t *testing.T) {
	t.Parallel()
	limited := with(func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3"), corev1.ResourceMemory: resource.MustParse("1Gi")}
	})
	request := func(t *testing.T, p *corev1.Pod, r corev1.ResourceName, want string) {
		t.Helper()
		q := p.Spec.Containers[0].Resources.Requests[r]
		require.Equal(t, want, q.String())
	}
	for name, tt := range map[string]struct {
		cluster  cluster.Config
		instance *vmi.VirtualMachineInstance
		check    func(*testing.T, *corev1.Pod)
	}{
		"as it is": {instance: vmitest.New(), check: func(t *testing.T, p *corev1.Pod) {
			request(t, p, corev1.ResourceCPU, "100m")
			request(t, p, corev1.ResourceMemory, "237Mi")
			require.Equal(t, corev1.PullIfNotPresent, p.Spec.Containers[0].ImagePullPolicy)
			require.Contains(t, p.Spec.Containers[0].Resources.Limits, corev1.ResourceName(vmi.KVMResource))
		}},
		"emulation": {cluster: cluster.Config{Pods: cluster.Pods{Emulation: new(true)}}, instance: vmitest.New(), check: func(t *testing.T, p *corev1.Pod) {
			require.Contains(t, p.Spec.Containers[0].Args, "--allow-emulation")
			require.Empty(t, p.Spec.Containers[0].Resources.Limits)
		}},
		"overhead, in whole MiB": {cluster: cluster.Config{Pods: cluster.Pods{OverheadRatio: 1.25}}, instance: vmitest.New(), check: func(t *testing.T, p *corev1.Pod) {
			request(t, p, corev1.ResourceMemory, "265Mi")
		}},
		"overcommitted memory": {cluster: cluster.Config{Pods: cluster.Pods{MemoryOvercommit: 200}}, instance: vmitest.New(), check: func(t *testing.T, p *corev1.Pod) {
			request(t, p, corev1.ResourceMemory, "173Mi")
		}},
		"a limit is not overcommitted": {cluster: cluster.Config{Pods: cluster.Pods{MemoryOvercommit: 200, CPUAllocationRatio: 2}}, instance: vmitest.New(limited), check: func(t *testing.T, p *corev1.Pod) {
			request(t, p, corev1.ResourceMemory, "1141Mi")
			request(t, p, corev1.ResourceCPU, "3")
		}},
		"a share of a CPU, rounded up": {cluster: cluster.Config{Pods: cluster.Pods{CPUAllocationRatio: 3}}, instance: vmitest.New(), check: func(t *testing.T, p *corev1.Pod) {
			request(t, p, corev1.ResourceCPU, "334m")
		}},
		"a CPU request": {cluster: cluster.Config{Defaults: defaults.Profile{CPURequest: new(resource.MustParse("250m"))}}, instance: vmitest.New(), check: func(t *testing.T, p *corev1.Pod) {
			request(t, p, corev1.ResourceCPU, "250m")
		}},
		"a VMI's own label of a node wins": {
			cluster:  cluster.Config{Pods: cluster.Pods{NodeSelector: map[string]string{"a": "1", "b": "1"}}},
			instance: vmitest.New(with(func(v *vmi.VirtualMachineInstance) { v.Spec.NodeSelector = map[string]string{"b": "2"} })),
			check: func(t *testing.T, p *corev1.Pod) {
				require.Equal(t, "1", p.Spec.NodeSelector["a"])
				require.Equal(t, "2", p.Spec.NodeSelector["b"])
			},
		},
		"nodes are of the VMI's architecture": {
			cluster: cluster.Config{Pods: cluster.Pods{NodeSelector: map[string]string{corev1.LabelArchStable: "arm64"}}},
			instance: vmitest.New(with(func(v *vmi.VirtualMachineInstance) {
				v.Spec.NodeSelector = map[string]string{corev1.LabelArchStable: "amd64"}
			})),
			check: func(t *testing.T, p *corev1.Pod) {
				require.Equal(t, map[string]string{vmi.SchedulableLabel: "true", corev1.LabelArchStable: "amd64"}, p.Spec.NodeSelector)
			},
		},
		"a VMI's architecture counts more than the cluster's": {
			cluster:  cluster.Config{Defaults: defaults.Profile{Architecture: "s390x"}, Pods: cluster.Pods{NodeSelector: map[string]string{corev1.LabelArchStable: "s390x"}}},
			instance: vmitest.New(with(func(v *vmi.VirtualMachineInstance) { v.Spec.Architecture = "amd64" })),
			check: func(t *testing.T, p *corev1.Pod) {
				require.Equal(t, "amd64", p.Spec.NodeSelector[corev1.LabelArchStable])
			},
		},
		"machine type and processor need no node of their own": {
			cluster:  cluster.Config{Defaults: defaults.Profile{CPUModel: vmi.CPUModelPassthrough, MachineTypes: map[string]string{"amd64": "pc-q35-7.2"}}},
			instance: vmitest.New(),
			check: func(t *testing.T, p *corev1.Pod) {
				require.Equal(t, map[string]string{vmi.SchedulableLabel: "true", corev1.LabelArchStable: "amd64"}, p.Spec.NodeSelector)
				require.Nil(t, p.Spec.Affinity)
			},
		},
		"when the image is pulled": {cluster: cluster.Config{Pods: cluster.Pods{ImagePullPolicy: corev1.PullNever}}, instance: vmitest.New(), check: func(t *testing.T, p *corev1.Pod) {
			require.Equal(t, corev1.PullNever, p.Spec.Containers[0].ImagePullPolicy)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := pod.Render(tt.instance, pod.Config{Launcher: pod.Launcher{Image: "example/virt-launcher:v1"}, Cluster: tt.cluster})
			require.NoError(t, err)
			tt.check(t, p)
		})
	}
}

func TestTheClusterDecidesOnEmulation(t *testing.T) {
	t.Parallel()
	p, err := pod.Render(vmitest.New(), pod.Config{Launcher: pod.Launcher{Image: "x", AllowEmulation: true}, Cluster: cluster.Config{Pods: cluster.Pods{Emulation: new(false)}}})
	require.NoError(t, err)
	require.NotContains(t, p.Spec.Containers[0].Args, "--allow-emulation")
}

func TestAVMIThatTheClusterForbidsHasNoPod(t *testing.T) {
	t.Parallel()
	_, err := pod.Render(vmitest.New(vmitest.WithBridge("net")), pod.Config{Launcher: pod.Launcher{Image: "x"}, Cluster: cluster.Config{Limits: validate.Limits{NoBridgeOnPodNetwork: true}}})
	require.ErrorIs(t, err, vmi.ErrInvalid)
	require.ErrorContains(t, err, "use masquerade")

	old := vmitest.New(with(func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Machine = &vmi.Machine{Type: "pc-q35-2.4"} }))
	_, err = pod.Render(old, pod.Config{Launcher: pod.Launcher{Image: "x"}, Cluster: cluster.Config{Limits: validate.Limits{MachineTypes: map[string][]string{"amd64": {"q35", "pc-q35-7.*"}}}}})
	require.ErrorIs(t, err, vmi.ErrInvalid)
	require.ErrorContains(t, err, `spec.domain.machine.type: Invalid value: "pc-q35-2.4": must match q35 or pc-q35-7.*`)
}
