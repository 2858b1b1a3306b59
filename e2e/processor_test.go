package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

func TestAGuestHasTheProcessorThatItsNodeIsLabelledWith(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	nodes, err := world.kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: vmi.SchedulableLabel + "=true"})
	require.NoError(t, err)
	require.NotEmpty(t, nodes.Items)
	for _, n := range nodes.Items {
		require.Equal(t, "true", n.Labels[vmi.CPUModelLabelPrefix+"Westmere"], n.Name)
		require.Equal(t, "true", n.Labels[vmi.CPUFeatureLabelPrefix+"aes"], n.Name)
		require.NotContains(t, n.Labels, vmi.CPUModelLabelPrefix+"Skylake-Server", "guests are emulated here")
		require.NotContains(t, n.Labels, vmi.CPUModelLabelPrefix+"qemu64", "the model is obsolete")
	}

	const report = "#!/bin/sh\n" +
		`echo "processor: $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(grep -c ^processor /proc/cpuinfo) of it, ` +
		`avx $(grep -m 1 ^flags /proc/cpuinfo | grep -cw avx), memory $(sed -n 's/^MemTotal: *//p' /proc/meminfo)" > /dev/console` + "\n"
	with := func(name, model string) *vmi.VirtualMachineInstance {
		v := seeded(name, vmi.VolumeSource{CloudInitNoCloud: &vmi.CloudInitNoCloud{UserData: report}})
		v.Spec.Domain.CPU = &vmi.CPU{Model: model, Sockets: 2, Features: []vmi.CPUFeature{{Name: "aes"}}}
		return s.create(v)
	}
	with("missing", "Skylake-Server")
	v := with("named", "Westmere")
	s.awaitPhase(v.Name, vmi.Running)
	console := s.awaitConsole(v, "processor: ")
	require.Contains(t, console, "processor: Westmere")
	require.Contains(t, console, ", 2 of it, avx 0, memory ")
	require.Regexp(t, `memory 1?[0-9]{5} kB`, console)

	eventually(t, long, func() error {
		c := s.get("missing").Status.Condition(vmi.ConditionPodScheduled)
		if c == nil || c.Status != corev1.ConditionFalse {
			return fmt.Errorf("the VMI with a model that no node has is not reported: %+v", c)
		}
		require.Equal(t, corev1.PodReasonUnschedulable, c.Reason)
		require.Contains(t, c.Message, "needs a node with cpu-feature.node.kubevirt.io/aes=true, cpu-model.node.kubevirt.io/Skylake-Server=true")
		return nil
	})
}
