package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/e2e/install"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
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
		v.Spec.Domain.CPU = &vmi.CPU{Model: model, Sockets: 1, Features: []vmi.CPUFeature{{Name: "aes"}}}
		return s.create(v)
	}
	with("missing", "Skylake-Server")
	v := with("named", "Westmere")
	s.awaitPhase(v.Name, vmi.PhaseRunning)
	console := s.awaitConsole(v, "processor: ")
	require.Contains(t, console, "processor: Westmere")
	require.Contains(t, console, ", 1 of it, avx 0, memory ")
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

func TestAVMIOfAnArchitectureThatNoNodeHasIsUnschedulable(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	v := guest("arm", cloudConfig("hostname: arm"))
	v.Spec.Architecture = "arm64"
	v = s.create(v)
	s.awaitCondition("arm", soon, vmi.ConditionPodScheduled, metav1.ConditionFalse, corev1.PodReasonUnschedulable)
	require.Equal(t, vmi.PhaseScheduling, s.get("arm").Status.Phase)
	p := s.pod(v)
	require.Equal(t, corev1.PodPending, p.Status.Phase)
	require.Equal(t, "arm64", p.Spec.NodeSelector[corev1.LabelArchStable])
	s.delete("arm")
	s.awaitGone(v)
}

// threads are the CPUs that each thread of the pod's process may use, by the thread's
// name.
func (n traces) threads(process string) map[string]string {
	n.t.Helper()
	pid, _, _ := strings.Cut(n.process(process), " ")
	all := map[string]string{}
	for line := range strings.Lines(n.run("for t in /proc/" + pid + "/task/*; do echo \"$(cat $t/comm)=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' $t/status)\"; done")) {
		name, cpus, _ := strings.Cut(strings.TrimSpace(line), "=")
		all[name] = cpus
	}
	return all
}

// The kubelets of the cluster give pods all CPUs but one. While the guest runs, other
// pods of its node do without its CPU.
func TestAGuestHasACPUOfItsNodeForItself(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	v := guest("alone", cloudConfig("hostname: alone"), onNode("n2"), vmitest.WithMemory("128Mi"), vmitest.WithGracePeriod(1))
	v.Spec.Domain.CPU = &vmi.CPU{Cores: 1, DedicatedCPUPlacement: true}
	s.create(v)
	v = s.awaitPhase("alone", vmi.PhaseRunning)
	p := s.pod(v)
	require.Equal(t, "true", p.Spec.NodeSelector[vmi.CPUManagerLabel])
	require.Equal(t, "n2", p.Spec.NodeSelector[corev1.LabelHostname])
	require.Equal(t, corev1.PodQOSGuaranteed, p.Status.QOSClass)
	require.Equal(t, corev1.PodQOSGuaranteed, *v.Status.QOSClass)

	threads := s.traces(v).threads("qemu-system")
	cpu := threads["CPU 0/TCG"]
	require.Regexp(t, `^\d+$`, cpu, "one CPU: %v", threads)
	l, err := world.kube.CoreV1().Pods(install.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "kubevirt.io=virt-handler", FieldSelector: "spec.nodeName=n2"})
	require.NoError(t, err)
	require.Len(t, l.Items, 1)
	other := traces{t: t, node: "n2", pod: string(l.Items[0].UID)}
	eventually(t, soon, func() error { // the kubelet moves them every ten seconds
		for name, cpus := range other.threads("virt-handler") {
			if strings.Contains(cpus, cpu) {
				return fmt.Errorf("the thread %s of virt-handler may use CPU %s: %s", name, cpu, cpus)
			}
		}
		return nil
	})
	s.delete("alone")
	s.awaitGone(v)
}
