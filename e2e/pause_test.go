package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

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
		if (p != nil) != want || r == nil || (r.Status == corev1.ConditionTrue) == want || v.Status.Phase != vmi.PhaseRunning {
			return fmt.Errorf("%s is %s with the conditions %+v", name, v.Status.Phase, v.Status.Conditions)
		}
		return nil
	})
	return v
}

func TestAPausedVMIIsOutOfItsServices(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	u := s.user("edit")
	pause := func() {
		doneOnce(t, func() error { return u.vmis.Pause(t.Context(), "still", vmi.PauseOptions{}) })
	}
	unpause := func() {
		doneOnce(t, func() error { return u.vmis.Unpause(t.Context(), "still", vmi.UnpauseOptions{}) })
	}
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

	unpause()
	s.awaitPaused("still", false)
	s.awaitServed("still", true)
	require.Contains(t, seen.awaitPage("http://still"), "still")

	pause()
	s.awaitPaused("still", true)
	s.awaitServed("still", false)
	require.True(t, apierrors.IsConflict(u.vmis.Pause(t.Context(), "still", vmi.PauseOptions{})), "it is paused already")

	// A paused guest reads nothing and shows what it showed, and its console and screen
	// open.
	console := u.console("still")
	console.types("\recho read-$((40+2))\r")
	require.NoError(t, u.screen("still", client.VNCOptions{}).Close())
	_, err := u.vmis.PortForward("still")(t.Context(), "tcp", ":80")
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.Empty(t, console.screen())

	unpause()
	console.shows("read-42", "")
	s.awaitPaused("still", false)
	s.awaitServed("still", true)
	require.Contains(t, seen.awaitPage("http://still"), "still")
	s.delete("still")
	s.awaitGone(v)
}
