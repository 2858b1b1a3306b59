package apiserver

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
)

// target makes, as virt-controller, the pod that a migration moves the VMI to. It runs on
// n2 and waits.
func (s space) target(v *vmi.VirtualMachineInstance) *corev1.Pod {
	s.t.Helper()
	m := &vmi.VirtualMachineInstanceMigration{ObjectMeta: metav1.ObjectMeta{Name: "move-" + v.Name}}
	m.Spec.VMIName = v.Name
	m, err := world.vmis.VirtualMachineInstanceMigrations(s.name).Create(s.t.Context(), m, metav1.CreateOptions{})
	require.NoError(s.t, err)
	c := build("")
	c.Role, c.Facts.Move = pod.Target(m), pod.MoveOf(m, s.pod(v), nil)
	p, err := pod.Render(v, c)
	require.NoError(s.t, err)
	made, err := s.asController().Pods(s.name).Create(s.t.Context(), p, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) { // virt-controller was first
		made, err = s.pods.Get(s.t.Context(), p.Name, metav1.GetOptions{})
	}
	require.NoError(s.t, err, "the policies permit it")
	p = made
	s.bind(p, "n2")
	s.status(p, running)
	return p
}

func TestATargetIsNeverTakenForTheActivePod(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.control()
	v := s.start("vm")
	first := s.pod(v)
	second := s.target(v)
	s.move(v, second)
	for _, tt := range []struct {
		selector string
		want     int
	}{{"status.migrationState.targetNode=n2", 1}, {"status.migrationState.targetNode=n1", 0}, {"status.nodeName=n2", 0}, {"status.nodeName=n1", 1}} {
		l, err := s.vmis.List(t.Context(), metav1.ListOptions{FieldSelector: tt.selector})
		require.NoError(t, err)
		require.Len(t, l.Items, tt.want, tt.selector)
	}

	s.vanish(second)
	s.awaitPhase(s.create(guest("later")).Name, vmi.PhaseScheduling) // the controller has seen that it is gone
	now := s.latest(v)
	require.Equal(t, vmi.PhaseRunning, now.Status.Phase)
	require.Equal(t, "n1", now.Status.NodeName)
	require.Equal(t, first.UID, s.pod(v).UID)
}

func TestATargetIsDeletedWithItsVMI(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.control()
	v := s.start("vm")
	second := s.target(v)
	require.NoError(t, s.report(s.latest(v), "n1", phase(vmi.PhaseSucceeded)))
	s.awaitLeaving(second)
	require.Equal(t, vmi.PhaseSucceeded, s.latest(v).Status.Phase)
}
