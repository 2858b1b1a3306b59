package instance

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

func TestAVMIThatNoNodeSuitsNamesTheLabelsOfItsProcessor(t *testing.T) {
	t.Parallel()
	p := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: map[string]string{
		"zone": "a", vmi.CPUModelLabelPrefix + "Haswell": "true", vmi.CPUFeatureLabelPrefix + "aes": "true", vmi.CPUManagerLabel: "true",
	}}}
	require.Equal(t, " The VMI's spec.domain.cpu needs a node with cpu-feature.node.kubevirt.io/aes=true, cpu-model.node.kubevirt.io/Haswell=true, kubevirt.io/cpumanager=true.",
		needs(p, corev1.PodReasonUnschedulable))
	require.Empty(t, needs(p, "SchedulerError"))
	delete(p.Spec.NodeSelector, vmi.CPUManagerLabel)
	require.Empty(t, needs(&corev1.Pod{Spec: corev1.PodSpec{NodeSelector: map[string]string{"zone": "a"}}}, corev1.PodReasonUnschedulable))
}
