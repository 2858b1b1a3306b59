package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func strategy(s vmi.EvictionStrategy) vmitest.Option {
	return func(v *vmi.VirtualMachineInstance) { v.Spec.EvictionStrategy = &s }
}

// evict asks for the eviction of the VMI's pod, as kubectl drain does.
func (s space) evict(v *vmi.VirtualMachineInstance) error {
	s.t.Helper()
	return world.kube.CoreV1().Pods(s.name).EvictV1(s.t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: s.pod(v).Name}})
}

func TestAnEvictedGuestPowersOffInOrder(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.create(guest("leaves", cloudConfig("hostname: leaves")))
	v := s.awaitPhase("leaves", vmi.PhaseRunning)
	require.Equal(t, new(vmi.EvictionNone), v.Spec.EvictionStrategy, "the default is written down")
	s.awaitConsole(v, ready)
	console := s.keepConsole(v)
	onNode := s.traces(v)
	require.NoError(t, s.evict(v))
	s.awaitPhase("leaves", vmi.PhaseSucceeded)
	require.Contains(t, s.awaitReason("leaves", "Evicted"), "the guest powered off")
	require.Contains(t, console(), "powering off")
	eventually(t, long, func() error {
		if pods := s.pods(v); len(pods) != 0 {
			return fmt.Errorf("pod %s is still there", pods[0].Name)
		}
		return nil
	})
	onNode.awaitNone()
	s.delete("leaves")
	s.awaitGone(v)
}

// A drain is no stop by the VM's user: what it ends is started again, also where a guest
// that powers itself off is not.
func TestAVMThatIsEvictedStartsAgain(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	name := "again"
	s.applyVM(vmi.RunRerunOnFailure, guest(name, cloudConfig("hostname: "+name)))
	s.awaitPrintable(name, vmi.StatusRunning)
	v := s.get(name)
	s.awaitConsole(v, ready)
	require.NoError(t, s.evict(v))
	next := s.next(name, v.UID)
	vm := s.getVM(name)
	l, err := world.kube.CoreV1().Events(s.name).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(vm.UID) + ",type=Warning"})
	require.NoError(t, err)
	require.Len(t, l.Items, 1)
	require.Equal(t, "Evicted", l.Items[0].Reason)
	require.Contains(t, l.Items[0].Message, "the guest powered off")
	s.kubectl("delete", "vm", name)
	s.awaitGone(next)
}

// bridged keeps a guest on its node: its address is that of its pod.
func bridged(v *vmi.VirtualMachineInstance) {
	v.Spec.Domain.Devices.Interfaces[0].InterfaceBinding = vmi.InterfaceBinding{Bridge: &vmi.InterfaceBridge{}}
}

func TestAGuestThatMayOnlyMigrateDoesNotNoticeAnEviction(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.service("stays")
	seen := s.newVisitor()
	s.create(guest("stays", cloudConfig("hostname: stays"), strategy(vmi.EvictionLiveMigrate), bridged))
	v := s.awaitSteady("stays")
	boot := seen.awaitPage("http://stays/boot-id")
	for range 3 {
		err := s.evict(v)
		require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
		require.ErrorContains(t, err, "VMI stays is configured with an eviction strategy but is not live-migratable")
	}
	require.Equal(t, boot, seen.awaitPage("http://stays/boot-id"), "the guest did not boot anew")
	requireSteady(t, v, s.get("stays"))
	require.Nil(t, s.pod(v).DeletionTimestamp)
	s.delete("stays")
	s.awaitGone(v)
}
