package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
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
		s.occupy(n, "")
	}
	v := s.create(guest("waiting", cloudConfig("hostname: waiting")))
	s.awaitFalse(v, vmi.ConditionPodScheduled)
	s.kubectl("delete", "pods", "-l", "app=occupier", "--grace-period=0")
	v = s.awaitPhase("waiting", vmi.PhaseRunning)
	require.Nil(t, v.Status.Condition(vmi.ConditionPodScheduled))
}

// occupy starts a pod of the priority class that takes what memory is free on the node, but for
// 100 MiB.
func (s space) occupy(node, class string) {
	s.t.Helper()
	n, err := world.kube.CoreV1().Nodes().Get(s.t.Context(), node, metav1.GetOptions{})
	require.NoError(s.t, err)
	free := n.Status.Allocatable.Memory().DeepCopy()
	var pods *corev1.PodList
	// What the tests before have left takes its memory until it is gone.
	eventually(s.t, long, func() error {
		pods, err = world.kube.CoreV1().Pods("").List(s.t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
		if err != nil {
			return err
		}
		for _, p := range pods.Items {
			if p.Namespace != s.name && strings.HasPrefix(p.Namespace, "e2e-") {
				return fmt.Errorf("pod %s of namespace %s is on node %s", p.Name, p.Namespace, node)
			}
		}
		return nil
	})
	for _, p := range pods.Items {
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, c := range p.Spec.Containers {
			free.Sub(*c.Resources.Requests.Memory())
		}
	}
	free.Sub(resource.MustParse("100Mi"))
	s.sleeper("occupier", class, free, func(p *corev1.PodSpec) { p.NodeName = node })
}

// sleeper starts a pod of the priority class that asks for memory, and waits until it runs.
func (s space) sleeper(app, class string, memory resource.Quantity, change func(*corev1.PodSpec)) {
	s.t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: app + "-", Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{
			PriorityClassName: class, TerminationGracePeriodSeconds: new(int64),
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(1000)), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: "sleep", Image: images.Reference("tools"), ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sleep", "3600"},
				Resources:       corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: memory}},
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
		},
	}
	change(&p.Spec)
	p, err := world.kube.CoreV1().Pods(s.name).Create(s.t.Context(), p, metav1.CreateOptions{})
	require.NoError(s.t, err)
	s.kubectl("wait", "--for=condition=Ready", "pod/"+p.Name, "--timeout=300s")
}

// A pod of a higher priority takes the room of a VMI on a full node.
func TestAVMIThatMakesRoomForAnotherPodSaysSo(t *testing.T) {
	s := newSpace(t)
	class, err := world.kube.SchedulingV1().PriorityClasses().Create(t.Context(), &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}, Value: 1000}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, world.kube.SchedulingV1().PriorityClasses().Delete(context.Background(), class.Name, metav1.DeleteOptions{}))
	})
	v := idle("moves")
	onNode("n2")(v)
	v = s.create(v)
	s.awaitPhase("moves", vmi.PhaseRunning)
	n := s.traces(v)
	s.occupy("n2", class.Name)
	s.sleeper("preemptor", class.Name, resource.MustParse("120Mi"), func(p *corev1.PodSpec) {
		p.NodeSelector = map[string]string{corev1.LabelHostname: "n2"}
	})
	v = s.awaitFailed("moves") // its guest does not power off
	require.Equal(t, "Preempted", v.Status.Reason)
	c := v.Status.Condition(vmi.ConditionReady)
	require.Equal(t, vmi.ReasonGuestNotRunning, c.Reason)
	require.Equal(t, corev1.ConditionTrue, v.Status.Condition(vmi.ConditionDisruptionTarget).Status)
	s.awaitEvent(v, "Stopped")
	n.awaitNone()
	s.delete("moves")
	s.awaitGone(v)
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
