package pod_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

const digest = "@sha256:0f3b1d1f5e4e0a2b7b7c7d5b3d4c1a2e9f8b7a6c5d4e3f2a1b0c9d8e7f6a5b4c"

// running is the pod of the VMI with what its node reports of the image.
func running(t *testing.T, v *vmi.VirtualMachineInstance, c pod.Config, reported string) *corev1.Pod {
	t.Helper()
	p, err := pod.Render(v, c)
	require.NoError(t, err)
	compute := corev1.ContainerStatus{Name: vmi.ComputeContainer}
	for _, m := range p.Spec.Volumes {
		if m.Image != nil {
			compute.VolumeMounts = append(compute.VolumeMounts, corev1.VolumeMountStatus{Name: m.Name, VolumeStatus: &corev1.VolumeStatus{Image: &corev1.ImageVolumeStatus{ImageRef: reported}}})
		}
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{compute}
	for _, i := range p.Spec.InitContainers {
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, corev1.ContainerStatus{Name: i.Name, ImageID: reported})
	}
	return p
}

// images are the images of the pod's disks and kernel.
func images(p *corev1.Pod) []string {
	var out []string
	for _, v := range p.Spec.Volumes {
		if v.Image != nil {
			out = append(out, v.Image.Reference)
		}
	}
	for _, c := range p.Spec.InitContainers {
		if c.Name != "install" {
			out = append(out, c.Image)
		}
	}
	return out
}

func TestATargetHasTheImagesThatTheGuestRunsWith(t *testing.T) {
	t.Parallel()
	const image = "registry.example/disks/fedora:40"
	for name, tt := range map[string]struct{ reported, want string }{
		"of its repository":                   {"registry.example/disks/fedora" + digest, "registry.example/disks/fedora" + digest},
		"of another repository":               {"docker.io/library/import-2030" + digest, image},
		"of no repository":                    {digest[1:], image},
		"that the node does not report":       {"", image},
		"of a repository that begins like it": {"registry.example/disks/fedora-2" + digest, image},
		"of which only the tag is known":      {image, image},
	} {
		for _, way := range []pod.ContainerDisks{pod.ImageVolume, pod.InitCopy} {
			v := vmitest.New(vmitest.WithContainerDisk("root", image), func(v *vmi.VirtualMachineInstance) {
				v.Spec.Domain.Firmware = &vmi.Firmware{KernelBoot: &vmi.KernelBoot{Container: &vmi.KernelBootContainer{Image: image, KernelPath: "/vmlinuz"}}}
			})
			c := pod.Config{Launcher: pod.Launcher{Image: "example/virt-launcher:v2", ContainerDisks: way}}
			source := running(t, v, c, tt.reported)
			require.Equal(t, []string{image, image}, images(source))
			c.Role, c.Facts.Move = pod.Target(migration), pod.MoveOf(migration, source, nil)
			target, err := pod.Render(v, c)
			require.NoError(t, err)
			require.Equal(t, []string{tt.want, tt.want}, images(target), "%s, %s", name, way)
			require.Equal(t, "example/virt-launcher:v2", target.Spec.Containers[0].Image)

			// The next target has a pod as its source whose images have their digests.
			c.Facts.Move = pod.MoveOf(migration, running(t, v, c, tt.reported), nil)
			next, err := pod.Render(v, c)
			require.NoError(t, err)
			require.Equal(t, images(target), images(next), "%s, %s", name, way)
			c.Role = pod.Role{}
			first, err := pod.Render(v, c)
			require.NoError(t, err)
			require.Equal(t, []string{image, image}, images(first), "only targets are pinned")
		}
	}
}

func TestATargetHasTheLayoutOfTheBusThatTheGuestHas(t *testing.T) {
	t.Parallel()
	c := pod.Config{Launcher: pod.Launcher{Image: "example/virt-launcher"}}
	stored := vmitest.New(vmitest.WithPhase(vmi.PhaseRunning)) // while the webhook was away
	begins := stored.DeepCopy()
	begins.Annotations = map[string]string{vmi.PCITopologyAnnotation: vmi.PCITopology}
	source, err := pod.Render(begins, c)
	require.NoError(t, err)
	for _, tt := range []struct {
		source *corev1.Pod
		want   string
	}{{source, vmi.PCITopology}, {&corev1.Pod{}, ""}, {nil, ""}} {
		c.Role, c.Facts.Move = pod.Target(migration), pod.MoveOf(migration, tt.source, nil)
		target, err := pod.Render(stored, c)
		require.NoError(t, err)
		require.Equal(t, tt.want, target.Annotations[vmi.PCITopologyAnnotation])
	}
}

func TestWhereATargetMayRun(t *testing.T) {
	t.Parallel()
	host := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
		vmi.HostModelLabelPrefix + "Skylake": "true", vmi.HostModelFeatureLabelPrefix + "vmx": "true", vmi.CPUVendorLabelPrefix + "Intel": "true", "zone": "a",
	}}}
	moved := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: map[string]string{vmi.CPUMigrationLabelPrefix + "Haswell": "true", "zone": "a"}}}
	hostModel := func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.CPU = &vmi.CPU{Model: vmi.CPUModelHost} }
	named := func(v *vmi.VirtualMachineInstance) { v.Spec.Domain.CPU = &vmi.CPU{Model: "Nehalem"} }
	inZone := func(v *vmi.VirtualMachineInstance) { v.Spec.NodeSelector = map[string]string{"zone": "b"} }
	for name, tt := range map[string]struct {
		vmi       vmitest.Option
		emulation bool
		added     map[string]string
		source    *corev1.Pod
		want      map[string]string // besides those of its first pod
	}{
		"the migration asks for a node":                 {named, true, map[string]string{"disk": "fast"}, nil, map[string]string{"disk": "fast"}},
		"it asks for another one than the VMI":          {inZone, true, map[string]string{"zone": "c"}, nil, map[string]string{}},
		"it asks for a node that is not ours":           {named, true, map[string]string{vmi.SchedulableLabel: "false"}, nil, map[string]string{}},
		"host-model":                                    {hostModel, false, nil, nil, map[string]string{vmi.CPUMigrationLabelPrefix + "Skylake": "true", vmi.CPUFeatureLabelPrefix + "vmx": "true", vmi.CPUVendorLabelPrefix + "Intel": "true"}},
		"host-model that has moved":                     {hostModel, false, nil, moved, map[string]string{vmi.CPUMigrationLabelPrefix + "Haswell": "true", vmi.CPUVendorLabelPrefix + "Intel": "true"}},
		"a named model":                                 {named, false, nil, nil, map[string]string{vmi.CPUVendorLabelPrefix + "Intel": "true"}},
		"an emulated processor runs on nodes of others": {named, true, nil, nil, map[string]string{}},
	} {
		v := vmitest.New(tt.vmi)
		c := pod.Config{Launcher: pod.Launcher{Image: "example/virt-launcher", AllowEmulation: tt.emulation}}
		first, err := pod.Render(v, c)
		require.NoError(t, err)
		m := migration.DeepCopy()
		m.Spec.AddedNodeSelector = tt.added
		c.Role, c.Facts.Move = pod.Target(m), pod.MoveOf(m, tt.source, host)
		target, err := pod.Render(v, c)
		require.NoError(t, err)
		got := map[string]string{}
		for k, val := range target.Spec.NodeSelector {
			if first.Spec.NodeSelector[k] != val {
				got[k] = val
			}
		}
		require.Equal(t, tt.want, got, name)
	}
}
