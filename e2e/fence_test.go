package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/e2e/install"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// nodes are those of the cluster.
var nodes = []string{"n1", "n2"}

// guests are the names of the namespace's guests that have a QEMU on the node.
func (s space) guests(ctx context.Context, node string) ([]string, error) {
	out, err := world.cluster.Node(node).Command(ctx, "sh", "-c", "pgrep -a -f '[g]uest="+s.name+"_' || true").Output()
	var names []string
	for line := range strings.Lines(string(out)) {
		_, rest, _ := strings.Cut(line, "guest="+s.name+"_")
		name, _, _ := strings.Cut(rest, ",")
		names = append(names, name)
	}
	return names, err
}

// countQEMUs looks at all nodes again and again, until the function that it returns is
// called: that requires that no guest ever had two QEMUs at a time.
func (s space) countQEMUs() (once func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	var wg sync.WaitGroup
	looks, seen, twice := 0, map[string]bool{}, map[string]bool{}
	wg.Go(func() {
		for ctx.Err() == nil {
			count, failed := map[string]int{}, false
			for _, node := range nodes {
				names, err := s.guests(ctx, node)
				failed = failed || err != nil
				for _, name := range names {
					count[name]++
				}
			}
			if !failed {
				looks++
			}
			for name, n := range count {
				seen[name] = true
				twice[name] = twice[name] || n > 1
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	once = func() {
		s.t.Helper()
		cancel()
		wg.Wait()
		require.NotEmpty(s.t, seen)
		for name := range seen {
			require.False(s.t, twice[name], "guest %s had two QEMUs at a time", name)
		}
		s.t.Logf("looked %d times at the QEMUs of %d guests", looks, len(seen))
	}
	s.t.Cleanup(func() { cancel(); wg.Wait() })
	return once
}

// force removes the VMI's pod as kubectl delete --force --grace-period=0 does.
func (s space) force(v *vmi.VirtualMachineInstance) {
	s.t.Helper()
	require.NoError(s.t, world.kube.CoreV1().Pods(s.name).Delete(s.t.Context(), s.pod(v).Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
}

// awaitRemoved waits until the VMI says that its pod was removed, and a part of why it waits.
func (s space) awaitRemoved(name, message string) *vmi.VirtualMachineInstance {
	s.t.Helper()
	c := s.awaitReady(name, soon, metav1.ConditionUnknown, vmi.ReasonPodRemoved)
	require.Contains(s.t, c.Message, message)
	v := s.get(name)
	require.Equal(s.t, vmi.PhaseRunning, v.Status.Phase, "its guest may still run")
	require.Equal(s.t, vmi.ReasonPodRemoved, v.Status.Reason)
	return v
}

func TestAPodRemovedByForceIsReplacedWhenNothingOfItIsLeft(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	once := s.countQEMUs()
	slow := guest("forced", cloudConfig("hostname: forced"), vmitest.WithGracePeriod(120))
	s.applyVM(vmi.RunAlways, slow)
	first := s.awaitSteady("forced")
	n := s.traces(first)
	s.force(first)
	second := s.next("forced", first.UID)
	n.awaitNone()

	// One that is deleted and loses its pod leaves nothing either, nor one that loses its
	// finalizers, and its VM.
	n = s.traces(second)
	s.kubectl("delete", "vm", "forced", "--wait=false")
	s.force(second)
	s.noFinalizers("forced")
	// virt-controller may have removed that of the VM by then.
	_, err := world.vmis.VirtualMachines(s.name).Patch(t.Context(), "forced", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
	n.awaitNone()
	s.awaitGone(second)
	once()
}

// idleVM writes a VM whose guest is an idle one.
func (s space) idleVM(name string, graceSeconds int64) {
	s.t.Helper()
	v := idle(name)
	v.Spec.TerminationGracePeriodSeconds = &graceSeconds
	s.applyVM(vmi.RunAlways, v)
}

// cordon keeps new pods from the node, until the function that it returns is called or the
// test ends.
func (s space) cordon(node string) (uncordon func()) {
	s.t.Helper()
	s.kubectl("cordon", node)
	uncordon = sync.OnceFunc(func() {
		_, err := world.kubectl.Run(context.Background(), "uncordon", node)
		require.NoError(s.t, err)
	})
	s.t.Cleanup(uncordon)
	return uncordon
}

// awaitHandler waits until the pod of virt-handler on the node is ready, and looks then
// whether the guest runs there: it must not.
func (s space) awaitHandler(node, without string) {
	s.t.Helper()
	eventually(s.t, long, func() error {
		l, err := world.kube.CoreV1().Pods(install.Namespace).List(s.t.Context(), metav1.ListOptions{LabelSelector: "kubevirt.io=virt-handler", FieldSelector: "spec.nodeName=" + node})
		if err != nil {
			return err
		}
		for _, p := range l.Items {
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil {
					names, err := s.guests(s.t.Context(), node)
					require.NoError(s.t, err)
					require.NotContains(s.t, names, without, "the handler of %s is ready, and the old guest runs", node)
					return nil
				}
			}
		}
		return fmt.Errorf("no handler is ready on %s", node)
	})
}

func TestAVMIWhoseNodeDoesNotRespondSaysSoAndEndsWhenItIsFenced(t *testing.T) {
	s := newSpace(t)
	once := s.countQEMUs()
	uncordon := s.cordon("n1")
	s.idleVM("forced", 1)
	s.idleVM("fenced", 600)
	s.create(idle("leaves"))
	s.create(idle("stays"))
	for _, name := range []string{"forced", "fenced", "leaves", "stays"} {
		s.awaitPhase(name, vmi.PhaseRunning)
	}
	forced, leaves, stays := s.get("forced"), s.get("leaves"), s.get("stays")
	n := s.traces(forced)
	uncordon()
	connect := n.disconnect()

	// Kubernetes takes 40 s to find it out.
	c := s.awaitReady("forced", 40*time.Second+aMinute, metav1.ConditionFalse, "NodeNotReady")
	require.Contains(t, c.Message, "n2")
	require.Equal(t, vmi.PhaseRunning, s.get("forced").Status.Phase, "its guest may still run")

	// A pod that is removed by force runs on: its VMI stays, also one that is deleted.
	s.force(forced)
	s.delete("leaves")
	s.force(leaves)
	const wayOut = "when the node comes back, or, after the node was powered off, when the Node is deleted or tainted node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
	require.Equal(t, forced.UID, s.awaitRemoved("forced", wayOut).UID)
	require.NotNil(t, s.awaitRemoved("leaves", wayOut).DeletionTimestamp)
	require.Contains(t, s.awaitEvent(forced, "PodRemoved").Message, "n2")
	again := idle("leaves")
	again.Namespace = s.name
	_, err := world.vmis.VirtualMachineInstances(s.name).Create(t.Context(), again, metav1.CreateOptions{})
	require.True(t, apierrors.IsAlreadyExists(err), "%v", err)
	names, err := s.guests(t.Context(), "n2")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"forced", "fenced", "leaves", "stays"}, names, "they all run")

	// The node comes back.
	connect()
	s.awaitGone(leaves)
	s.next("forced", forced.UID)
	n.awaitNone()
	s.awaitReady("stays", long, metav1.ConditionTrue, "")
	require.Equal(t, stays.Status.ActivePods, s.get("stays").Status.ActivePods)
	once()

	// The administrator fences a node whose guests run: that is a false statement.
	fenced := s.get("fenced")
	connect = n.disconnect()
	s.awaitReady("fenced", 40*time.Second+aMinute, metav1.ConditionFalse, "NodeNotReady")
	s.kubectl("taint", "node", "n2", "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
	t.Cleanup(func() {
		_, _ = world.kubectl.Run(context.Background(), "taint", "node", "n2", "node.kubernetes.io/out-of-service-")
	})
	require.Equal(t, vmi.ReasonNodeUnresponsive, s.awaitFailed("stays").Status.Reason)
	require.Equal(t, "n1", s.next("fenced", fenced.UID).Status.NodeName)
	names, err = s.guests(t.Context(), "n2")
	require.NoError(t, err)
	require.Contains(t, names, "fenced", "the old guest runs beside the new one")
	require.NoError(t, notReady(t, "n2"))
	connect()
	s.awaitHandler("n2", "fenced")
	s.kubectl("taint", "node", "n2", "node.kubernetes.io/out-of-service-")
	require.Equal(t, "n1", s.get("fenced").Status.NodeName)
	s.awaitReady("fenced", long, metav1.ConditionTrue, "")
	names, err = s.guests(t.Context(), "n1")
	require.NoError(t, err)
	require.Contains(t, names, "fenced", "the new guest runs on")
	s.kubectl("delete", "vm", "forced", "fenced", "--wait=false")
	s.traces(s.get("fenced")).kill("guest=") // which would have its grace period
	s.delete("stays")
	s.awaitGone(stays)
	for _, name := range []string{"forced", "fenced"} {
		s.awaitNoVMI(name)
	}
}

// notReady returns an error if the handler of the node is ready.
func notReady(t *testing.T, node string) error {
	t.Helper()
	l, err := world.kube.CoreV1().Pods(install.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "kubevirt.io=virt-handler", FieldSelector: "spec.nodeName=" + node})
	require.NoError(t, err)
	for _, p := range l.Items {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				return fmt.Errorf("pod %s is ready", p.Name)
			}
		}
	}
	return nil
}

func (s space) awaitNoVMI(name string) {
	s.t.Helper()
	eventually(s.t, long, func() error {
		_, err := world.vmis.VirtualMachineInstances(s.name).Get(s.t.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("VMI %s is still there: %w", name, err)
	})
}

// awaitFailed waits until the VMI has failed.
func (s space) awaitFailed(name string) *vmi.VirtualMachineInstance {
	s.t.Helper()
	var v *vmi.VirtualMachineInstance
	eventually(s.t, long, func() error {
		if v = s.get(name); v.Status.Phase != vmi.PhaseFailed {
			return fmt.Errorf("%s is %s: %+v", name, v.Status.Phase, v.Status.Conditions)
		}
		return nil
	})
	return v
}

// end ends a program of the node, which its supervisor starts again.
func (n traces) end(program string) {
	n.t.Helper()
	before := n.run("pgrep -x " + program)
	n.run("pkill -9 -x " + program)
	eventually(n.t, soon, func() error {
		if now := n.run("pgrep -x " + program + " || true"); now == "" || now == before {
			return fmt.Errorf("%s does not run again", program)
		}
		return nil
	})
}

func TestAGuestRunsOnWithoutItsRuntimeAndEndsWithItsNode(t *testing.T) {
	s := newSpace(t)
	uncordon := s.cordon("n1")
	s.idleVM("runs", 600)
	v := s.awaitPhase("runs", vmi.PhaseRunning)
	n := s.traces(v)
	uncordon()
	qemu := n.process("guest=")
	n.end("containerd")
	s.kubectl("wait", "node/n2", "--for=condition=Ready", "--timeout=300s")
	s.awaitReady("runs", long, metav1.ConditionTrue, "")
	require.Equal(t, qemu, n.process("guest="))
	require.Equal(t, v.UID, s.get("runs").UID)

	// The Node is deleted while its host runs: that is a false statement too.
	connect := n.disconnect()
	s.kubectl("delete", "node", "n2", "--wait=false")
	require.Equal(t, "n1", s.next("runs", v.UID).Status.NodeName)
	connect()
	n.end("kubelet") // which registers its node at its start only
	s.awaitHandler("n2", "runs")
	n.awaitNone()
	names, err := s.guests(t.Context(), "n1")
	require.NoError(t, err)
	require.Equal(t, []string{"runs"}, names, "the new guest runs on")
	s.kubectl("wait", "node/n2", "--for=condition=Ready", "--timeout=300s")
	for _, args := range [][]string{{"daemonset/virt-handler"}, {"deployment/virt-controller"}} {
		_, err := world.kubectl.Run(t.Context(), append([]string{"-n", install.Namespace, "rollout", "status", "--timeout=300s"}, args...)...)
		require.NoError(t, err)
	}
	s.kubectl("delete", "vm", "runs", "--wait=false")
	s.traces(s.get("runs")).kill("guest=")
	s.awaitNoVMI("runs")
}
