package apiserver

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/podvisor/podvisor/vmi"
)

// home is the namespace of virt-handler.
const home = "kubevirt"

// makeNode makes the node n1 with a virt-handler, both ready. Nothing runs there.
func makeNode(ctx context.Context, kube kubernetes.Interface) error {
	n, err := kube.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create node n1: %w", err)
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	if _, err := kube.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("make node n1 ready: %w", err)
	}
	p, err := kube.CoreV1().Pods(home).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "virt-handler-n1", Labels: map[string]string{vmi.AppLabel: "virt-handler"}},
		Spec: corev1.PodSpec{
			NodeName: "n1", ServiceAccountName: "virt-handler", AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{{Name: "virt-handler", Image: "example/virt-handler:v1"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create pod virt-handler-n1: %w", err)
	}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if _, err := kube.CoreV1().Pods(home).UpdateStatus(ctx, p, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("make pod virt-handler-n1 ready: %w", err)
	}
	return nil
}

// node makes a node of the name of the space, on which nothing runs. It is ready or not as
// become says.
func (s space) node() (become func(corev1.ConditionStatus)) {
	s.t.Helper()
	nodes := world.kube.CoreV1().Nodes()
	n, err := nodes.Create(s.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.name}}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = nodes.Delete(context.Background(), s.name, metav1.DeleteOptions{}) })
	return func(status corev1.ConditionStatus) {
		s.t.Helper()
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.Now()}}
		n, err = nodes.UpdateStatus(s.t.Context(), n, metav1.UpdateOptions{})
		require.NoError(s.t, err)
	}
}

func TestANodeWithoutAHandlerAndThenAwayEndsAVMIOnlyWhenItIsFenced(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	nodes := world.kube.CoreV1().Nodes()
	become := s.node()
	become(corev1.ConditionTrue)
	s.control()
	v := s.create(guest("vm"))
	p := s.pod(v)
	s.bind(p, s.name)
	s.status(p, running)
	s.awaitPhase("vm", vmi.PhaseScheduled)
	require.Contains(t, s.awaitReason("vm", vmi.ConditionReady, "HandlerNotReady").Message, "node "+s.name+" has no pod of virt-handler")
	become(corev1.ConditionUnknown)
	s.awaitReason("vm", vmi.ConditionReady, "NodeNotReady")
	require.NoError(t, s.pods.Delete(t.Context(), p.Name, metav1.DeleteOptions{}))
	eventually(t, func() error {
		p, err := s.pods.Get(t.Context(), p.Name, metav1.GetOptions{})
		if err == nil && p.DeletionTimestamp == nil {
			err = fmt.Errorf("pod %s is not being deleted", p.Name)
		}
		return err
	})
	s.awaitPhase("vm", vmi.PhaseScheduled)
	s.vanish(p)
	require.Contains(t, s.awaitRemoved("vm").Status.Condition(vmi.ConditionReady).Message, "node "+s.name+" is not ready: the guest may still run there")
	require.NoError(t, nodes.Delete(t.Context(), s.name, metav1.DeleteOptions{}))
	require.Equal(t, "NodeUnresponsive", s.awaitPhase("vm", vmi.PhaseFailed).Status.Reason)
	s.awaitEvents(v, "Normal SuccessfulCreate ×1", "Warning HandlerNotReady ×1", "Warning NodeNotReady ×1", "Warning PodRemoved ×1", "Warning NodeUnresponsive ×1")
	const status = "PATCH virtualmachineinstances/vm/status 200"
	require.Equal(t, []string{"POST pods 201", "PATCH virtualmachineinstances/vm 200", status, "PATCH pods/status 200", status, status, status, status}, texts(s.quick(v, 0)))
}
