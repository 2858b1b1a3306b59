package e2e

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/handler/socket"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// call makes a call to the launcher of the VMI, as virt-handler does.
func (s space) call(v *vmi.VirtualMachineInstance, call protocol.Call) {
	s.t.Helper()
	p := s.pod(v)
	pods, err := socket.Open(filepath.Join(filepath.Dir(world.cluster.Kubeconfig), p.Spec.NodeName, "lib/kubelet/pods"))
	require.NoError(s.t, err)
	defer pods.Close()
	launcher := control.NewClient(func(ctx context.Context) (net.Conn, error) { return pods.Dial(ctx, string(p.UID)) })
	require.NoError(s.t, launcher.Call(s.t.Context(), call, nil, nil))
}

// awaitServed waits until the Service leads, or does not lead, to the VMI.
func (s space) awaitServed(service string, want bool) {
	s.t.Helper()
	eventually(s.t, long, func() error {
		l, err := world.kube.DiscoveryV1().EndpointSlices(s.name).List(s.t.Context(), metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + service})
		if err != nil {
			return err
		}
		served := false
		for _, slice := range l.Items {
			for _, e := range slice.Endpoints {
				served = served || e.Conditions.Ready != nil && *e.Conditions.Ready
			}
		}
		if served != want {
			return fmt.Errorf("the Service %s leads to the VMI: %v", service, served)
		}
		return nil
	})
}

// awaitPaused waits until the VMI's conditions say that its guest is paused, or not.
func (s space) awaitPaused(name string, want bool) *vmi.VirtualMachineInstance {
	s.t.Helper()
	var v *vmi.VirtualMachineInstance
	eventually(s.t, long, func() error {
		v = s.get(name)
		p, r := v.Status.Condition(vmi.ConditionPaused), v.Status.Condition(vmi.ConditionReady)
		if (p != nil) != want || r == nil || (r.Status == corev1.ConditionTrue) == want || v.Status.Phase != vmi.Running {
			return fmt.Errorf("%s is %s with the conditions %+v", name, v.Status.Phase, v.Status.Conditions)
		}
		return nil
	})
	return v
}

func TestAPausedVMIIsOutOfItsServices(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.service("still")
	seen := s.newVisitor()
	v := guest("still", cloudConfig("hostname: still"))
	v.Spec.StartStrategy = new(vmi.StartPaused)
	s.create(v)
	v = s.awaitPaused("still", true)
	require.Equal(t, vmi.ReasonPausedByUser, v.Status.Condition(vmi.ConditionPaused).Reason)
	require.Equal(t, vmi.ReasonGuestNotRunning, v.Status.Condition(vmi.ConditionReady).Reason)
	require.NotContains(t, s.console(v), "Linux version", "its processors have not run")
	s.awaitServed("still", false)

	s.call(v, protocol.CallUnpause)
	s.awaitPaused("still", false)
	s.awaitServed("still", true)
	require.Contains(t, seen.awaitPage("http://still"), "still")

	s.call(v, protocol.CallPause)
	s.awaitPaused("still", true)
	s.awaitServed("still", false)
	s.call(v, protocol.CallPause) // again, which changes nothing

	s.call(v, protocol.CallUnpause)
	s.awaitPaused("still", false)
	s.awaitServed("still", true)
	require.Contains(t, seen.awaitPage("http://still"), "still")
	s.delete("still")
	s.awaitGone(v)
}
