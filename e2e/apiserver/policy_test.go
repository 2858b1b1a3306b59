package apiserver

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/podvisor/podvisor/vmi"
)

func TestAHandlerWritesMachinesOfItsNodeOnly(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.control()
	v := s.start("vm")
	tests := []struct {
		name, node string
		change     func(*vmi.VirtualMachineInstanceStatus)
		message    string
	}{
		{"another node's handler", "n2", phase(vmi.Failed), "may not change a machine of another node"},
		{"a handler whose token names no node", "", phase(vmi.Failed), "does not say which node"},
		{"a handler that gives its machine away", "n1", func(s *vmi.VirtualMachineInstanceStatus) { s.NodeName = "n2" }, "may not change a machine of another node"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := s.report(v, tt.node, tt.change)
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			require.ErrorContains(t, err, tt.message)
		})
	}
	require.NoError(t, s.report(v, "n1", phase(vmi.Succeeded)))
}

func TestAHandlerMarksItsNodeOnly(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	node := s.name
	_, err := world.kube.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{"zone": "a"}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = world.kube.CoreV1().Nodes().Delete(t.Context(), node, metav1.DeleteOptions{}) })
	tests := []struct {
		name, as, patch, message string
	}{
		{"its own label and heartbeat", node, `{"metadata":{"labels":{"kubevirt.io/schedulable":"true"},"annotations":{"kubevirt.io/heartbeat":"x"}}}`, ""},
		{"a label of a processor", node, `{"metadata":{"labels":{"cpu-model.node.kubevirt.io/Skylake":"true"}}}`, ""},
		{"another node", "other", `{"metadata":{"labels":{"kubevirt.io/schedulable":"false"}}}`, "may not change another node"},
		{"somebody else's label", node, `{"metadata":{"labels":{"zone":"b"}}}`, "labels of kubevirt.io only"},
		{"the removal of somebody else's label", node, `{"metadata":{"labels":{"zone":null}}}`, "labels of kubevirt.io only"},
		{"a label that only looks like ours", node, `{"metadata":{"labels":{"kubevirt.io.example.com/x":"b"}}}`, "labels of kubevirt.io only"},
		{"the spec", node, `{"spec":{"unschedulable":true}}`, "may not change the spec"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			kube, err := kubernetes.NewForConfig(asHandler(tt.as))
			require.NoError(t, err)
			_, err = kube.CoreV1().Nodes().Patch(t.Context(), node, types.StrategicMergePatchType, []byte(tt.patch), metav1.PatchOptions{})
			if tt.message == "" {
				require.NoError(t, err)
				return
			}
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			require.ErrorContains(t, err, tt.message)
		})
	}
}

func TestTheFinalizerComesWithTheMachine(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	require.Equal(t, []string{vmi.Finalizer}, s.create(guest("plain")).Finalizers)
	with := guest("with")
	with.Finalizers = []string{"example.com/mine"}
	require.Equal(t, []string{"example.com/mine", vmi.Finalizer}, s.create(with).Finalizers)
	has := guest("has")
	has.Finalizers = []string{vmi.Finalizer}
	require.Equal(t, []string{vmi.Finalizer}, s.create(has).Finalizers)
}
