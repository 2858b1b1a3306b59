package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/e2e/images"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestAnUnknownFieldIsRejectedByName(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.endTurn() // nothing boots
	manifest := `
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {name: typo}
spec:
  domain:
    devices: {}
    memory: {geust: 128Mi}
`
	_, err := world.kubectl.RunInput(t.Context(), strings.NewReader(manifest), "-n", s.name, "apply", "-f", "-")
	require.ErrorContains(t, err, `unknown field "spec.domain.memory.geust"`)
}

func TestAMissingImageIsNamedAndTheVMIStartsWhenItIsThere(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	const missing = "localhost/podvisor/missing:e2e"
	v := guest("waiting", cloudConfig("hostname: waiting"))
	v.Spec.Volumes[0].ContainerDisk.Image = missing
	v = s.create(v)
	c := s.awaitFalse(v, vmi.ConditionSynchronized)
	require.Contains(t, c.Message, missing)
	require.Contains(t, c.Message, "root", "the message names the volume")
	require.Contains(t, s.awaitEvent(v, c.Reason).Message, missing)

	for _, n := range world.cluster.NodeNames() {
		tag := world.cluster.Node(n).Command(t.Context(), "ctr", "-n", "k8s.io", "images", "tag", "--force", images.Reference("demo-guest"), missing)
		out, err := tag.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	v = s.awaitPhase("waiting", vmi.PhaseRunning)
	require.Nil(t, v.Status.Condition(vmi.ConditionSynchronized), "the condition is removed")
	s.delete("waiting")
	s.awaitGone(v)
}

func TestAMachineTypeThatQEMUDoesNotHaveIsNamedWithThoseThatItHas(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	v := guest("future", cloudConfig("hostname: future"))
	v.Spec.Domain.Machine = &vmi.Machine{Type: "pc-q35-99.9"}
	s.create(v)
	v = s.awaitPhase("future", vmi.PhaseFailed)
	require.Equal(t, "CannotStart", v.Status.Reason)
	const says = "QEMU has no machine type pc-q35-99.9: set machine.type to one of q35, pc-q35-"
	require.Contains(t, v.Status.Condition(vmi.ConditionReady).Message, says)
	require.Contains(t, s.awaitEvent(v, "Stopped").Message, says)
}

func TestAVMIThatNoNodeHasRoomForReportsIt(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.endTurn() // nothing boots
	v := s.create(guest("huge", cloudConfig("hostname: huge"), vmitest.WithMemory("1Ti")))
	c := s.awaitFalse(v, vmi.ConditionPodScheduled)
	require.Contains(t, c.Message, "Insufficient memory")
	require.Equal(t, vmi.PhaseScheduling, s.get("huge").Status.Phase)
	s.delete("huge")
	s.awaitGone(v)
}

func TestAVMIStartsWhenThereIsRoomAgain(t *testing.T) {
	s := newSpace(t)
	// One pod for each node takes a resource that only one VMI's pod can
	// have: all memory but 100 MiB.
	for _, n := range world.cluster.NodeNames() {
		s.occupy(n)
	}
	v := s.create(guest("waiting", cloudConfig("hostname: waiting")))
	s.awaitFalse(v, vmi.ConditionPodScheduled)
	s.kubectl("delete", "pods", "-l", "app=occupier", "--grace-period=0")
	v = s.awaitPhase("waiting", vmi.PhaseRunning)
	require.Nil(t, v.Status.Condition(vmi.ConditionPodScheduled))
}

// occupy starts a pod that takes what memory is free on the node, but for 100
// MiB.
func (s space) occupy(node string) {
	s.t.Helper()
	n, err := world.kube.CoreV1().Nodes().Get(s.t.Context(), node, metav1.GetOptions{})
	require.NoError(s.t, err)
	free := n.Status.Allocatable.Memory().DeepCopy()
	pods, err := world.kube.CoreV1().Pods("").List(s.t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	require.NoError(s.t, err)
	for _, p := range pods.Items {
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, c := range p.Spec.Containers {
			free.Sub(*c.Resources.Requests.Memory())
		}
	}
	free.Sub(resource.MustParse("100Mi"))
	yes, no, user := true, false, int64(1000)
	p, err := world.kube.CoreV1().Pods(s.name).Create(s.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "occupier-", Labels: map[string]string{"app": "occupier"}},
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: new(int64),
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &user, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: "sleep", Image: images.Reference("tools"), ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sleep", "3600"},
				Resources:       corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: free}},
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
		},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	s.kubectl("wait", "--for=condition=Ready", "pod/"+p.Name, "--timeout=60s")
}

// awaitFalse waits until the VMI has the condition and it is False.
func (s space) awaitFalse(v *vmi.VirtualMachineInstance, which vmi.ConditionType) vmi.Condition {
	s.t.Helper()
	var found vmi.Condition
	eventually(s.t, long, func() error {
		c := s.get(v.Name).Status.Condition(which)
		if c == nil || c.Status != corev1.ConditionFalse {
			return fmt.Errorf("%s has no condition %s that is False: %v", v.Name, which, c)
		}
		found = *c
		return nil
	})
	return found
}
