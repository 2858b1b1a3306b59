package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/e2e/install"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// withScheduler leaves the VMI's pod to another scheduler.
func withScheduler(name string) vmitest.Option {
	return func(v *vmi.VirtualMachineInstance) { v.Spec.SchedulerName = name }
}

// withoutNetwork makes the container runtime fail when it sets up the network of the
// pod: a bandwidth of less than a kilobit per second is none.
func withoutNetwork(v *vmi.VirtualMachineInstance) {
	v.Annotations = map[string]string{"kubernetes.io/ingress-bandwidth": "1"}
}

// awaitReason waits until the VMI has the reason, and returns the message of Ready.
func (s space) awaitReason(name, reason string) string {
	s.t.Helper()
	var message string
	eventually(s.t, soon, func() error {
		v := s.get(name)
		c := v.Status.Condition(vmi.ConditionReady)
		if v.Status.Reason != reason || c == nil || c.Status != corev1.ConditionFalse {
			return fmt.Errorf("%s is %s with reason %q, not %s: %+v", name, v.Status.Phase, v.Status.Reason, reason, v.Status.Conditions)
		}
		message = c.Message
		return nil
	})
	return message
}

// awaitCause is awaitReason, of a message that says what ended the pod too. Of a guest that ends
// before that is known, virt-handler says so, and virt-controller corrects it.
func (s space) awaitCause(name, reason string) (message string) {
	s.t.Helper()
	eventually(s.t, soon, func() error {
		if message = s.awaitReason(name, reason); strings.HasPrefix(message, vmi.UnknownDisruption) {
			return fmt.Errorf("%s says %q", name, message)
		}
		return nil
	})
	return message
}

// row is the line of the VMI in the wide output of kubectl get.
func (s space) row(name string) string {
	s.t.Helper()
	lines := strings.Split(s.kubectl("get", "vmi", name, "-o", "wide"), "\n")
	require.Regexp(s.t, `^NAME +AGE +PHASE +IP +NODENAME +READY +LIVE-MIGRATABLE +PAUSED +REASON +MESSAGE`, lines[0])
	return lines[1]
}

// warnings are the reasons of the VMI's warning events, with how often each was
// written.
func (s space) warnings(v *vmi.VirtualMachineInstance) map[string]int32 {
	s.t.Helper()
	out := map[string]int32{}
	for _, e := range s.events(v) {
		if e.Type == corev1.EventTypeWarning {
			out[e.Reason] += max(e.Count, 1)
		}
	}
	return out
}

func TestAVMIOfASchedulerThatDoesNotExistSaysSo(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.endTurn() // nothing boots
	v := s.create(guest("waits", cloudConfig("hostname: waits"), withScheduler("nosuch")))
	const says = "scheduler nosuch has done nothing with the pod of the VMI"
	require.Contains(t, s.awaitReason("waits", "SchedulerUnresponsive"), says)
	require.Contains(t, s.row("waits"), says)
	require.Contains(t, s.awaitEvent(v, "SchedulerUnresponsive").Message, says)
	s.delete("waits")
	s.awaitGone(v)
}

func TestANetworkThatCannotBeMadeIsSaidOnceAsTheEventsOfThePodSayIt(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.endTurn() // nothing boots
	start := time.Now()
	v := s.create(guest("alone", cloudConfig("hostname: alone"), withoutNetwork))
	message := s.awaitReason("alone", "FailedCreatePodSandBox")
	t.Logf("after %s: %s", time.Since(start).Round(10*time.Millisecond), message)
	require.Contains(t, message, "failed to setup network for sandbox")
	require.Contains(t, s.row("alone"), "FailedCreatePodSandBox")
	said := s.get("alone")
	eventually(t, long, func() error { // the kubelet tries again, with another sandbox
		tries := int32(0)
		l, err := world.kube.CoreV1().Events(s.name).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(s.pod(v).UID)})
		for _, e := range l.Items {
			if e.Reason == "FailedCreatePodSandBox" {
				tries += max(e.Count, 1)
			}
		}
		if err == nil && tries < 3 {
			err = fmt.Errorf("the kubelet has tried %d times", tries)
		}
		return err
	})
	require.Equal(t, said.ResourceVersion, s.get("alone").ResourceVersion, "it is not written again")
	require.Equal(t, map[string]int32{"FailedCreatePodSandBox": 1}, s.warnings(v))
	s.delete("alone")
	s.awaitGone(v)
}

func TestTriesToPullAnImageAreOneWriteAndOneEvent(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.endTurn() // nothing boots
	v := guest("waits", cloudConfig("hostname: waits"))
	v.Spec.Volumes[0].ContainerDisk.Image = "localhost:1/podvisor/missing:e2e"
	v = s.create(v)
	eventually(t, long, func() error {
		pods := s.pods(v)
		for _, p := range pods {
			for _, c := range p.Status.ContainerStatuses {
				if w := c.State.Waiting; w != nil && w.Reason == "ImagePullBackOff" {
					return nil
				}
			}
		}
		return fmt.Errorf("the kubelet does not back off: %+v", pods)
	})
	require.Contains(t, s.awaitReason("waits", "ImagePullBackOff"), "volume root: ")
	said := s.get("waits")
	eventually(t, long, func() error { // the kubelet tries once more
		var tries int32
		l, err := world.kube.CoreV1().Events(s.name).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(s.pod(v).UID) + ",reason=Pulling"})
		for _, e := range l.Items {
			tries += max(e.Count, 1)
		}
		if err == nil && tries < 3 {
			err = fmt.Errorf("the kubelet has tried %d times", tries)
		}
		return err
	})
	require.Equal(t, said.ResourceVersion, s.get("waits").ResourceVersion, "it stays there")
	warnings := s.warnings(v)
	if warnings["ErrImagePull"] == 0 { // on a busy host it is over before virt-controller sees it
		warnings["ErrImagePull"] = 1
	}
	require.Equal(t, map[string]int32{"ErrImagePull": 1, "ImagePullBackOff": 1}, warnings)
	s.delete("waits")
	s.awaitGone(v)
}

func TestAGuestThatDoesNotPowerOffWhenItIsEvictedIsSaidToBeEvicted(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.create(idle("slow"))
	v := s.awaitPhase("slow", vmi.PhaseRunning) // it takes no notice of the power button
	require.NoError(t, s.evict(v))
	s.awaitPhase("slow", vmi.PhaseFailed)
	message := s.awaitCause("slow", "Evicted")
	require.Contains(t, message, "evicted from node")
	require.Contains(t, message, "had not powered off when its grace period was over")
	require.Contains(t, s.row("slow"), "Evicted")
	s.delete("slow")
	s.awaitGone(v)
}

// A node that restarts takes everything with it that runs there, so this test runs
// beside no other one.
func TestAVMIWhoseNodeRestartsSaysSo(t *testing.T) {
	s := newSpace(t)
	s.create(guest("gone", cloudConfig("hostname: gone"), onNode("n2")))
	v := s.awaitPhase("gone", vmi.PhaseRunning)
	pid, err := world.cluster.Node("n2").PID()
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	eventually(t, long, func() error {
		if phase := s.get("gone").Status.Phase; phase != vmi.PhaseFailed {
			return fmt.Errorf("gone is %s", phase)
		}
		return nil
	})
	require.Contains(t, s.awaitReason("gone", "NodeRestarted"), "node n2 was restarted")
	require.Contains(t, s.row("gone"), "NodeRestarted")
	for _, args := range [][]string{
		{"wait", "node/n2", "--for=condition=Ready", "--timeout=300s"},
		{"-n", install.Namespace, "rollout", "status", "daemonset/virt-handler", "--timeout=300s"},
		{"-n", install.Namespace, "rollout", "status", "deployment/virt-controller", "--timeout=300s"},
	} {
		_, err := world.kubectl.Run(t.Context(), args...)
		require.NoError(t, err)
	}
	s.create(guest("next", cloudConfig("hostname: next"), onNode("n2")))
	s.awaitPhase("next", vmi.PhaseRunning)
	for _, name := range []string{"gone", "next"} {
		s.delete(name)
	}
	s.awaitGone(v)
}
