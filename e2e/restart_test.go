package e2e

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/e2e/install"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// These tests kill what all VMIs depend on, so none runs beside another.

func TestAGuestDoesNotNoticeThatTheControllerIsKilled(t *testing.T) {
	undisturbed(t, "virt-controller", "deployment/virt-controller")
}

func TestAGuestDoesNotNoticeThatTheHandlerIsKilledAndReplaced(t *testing.T) {
	undisturbed(t, "virt-handler", "daemonset/virt-handler")
}

// undisturbed kills a component while a guest runs, and replaces its pods as an upgrade
// does: the guest goes on with its addresses and connections, its status stays right, and
// both go on to work when the component is back.
func undisturbed(t *testing.T, component, object string) {
	s := newSpace(t)
	s.service("steady")
	seen := s.newVisitor()
	other := s.endPod("other", "n2", nil)
	s.create(endGuest("steady", "n1", other, vmitest.WithMasquerade("default")))
	v := s.awaitSteady("steady")
	boot := seen.awaitPage("http://steady/boot-id")
	require.NotEmpty(t, boot)
	steady := s.endOf("steady", s.pod(v))
	goesOn := []func(){steady.hold(other), other.hold(steady)}
	addresses := steady.must("ip", "-o", "-4", "addr")
	u := s.user("edit")

	for what, do := range []func(){
		func() { s.killComponent(component, v.Status.NodeName) },
		func() { replaceComponent(t, object) },
	} {
		streams := u.openStreams("steady")
		do()
		if what == 1 || component == "virt-handler" {
			streams[0].isCut()
			streams[1].isCut()
			u.opensAnew("steady")
		} else {
			// The streams may lead through the other virt-controller than the killed one: then
			// they go on until the next ones are opened.
			streams[0].worksOrIsCut()
			u.opensAnew("steady")
			streams[0].isCut()
			streams[1].isCut()
		}
		for _, check := range goesOn {
			check()
		}
		require.Equal(t, boot, seen.awaitPage("http://steady/boot-id"), "the guest did not boot anew")
		require.Equal(t, addresses, steady.must("ip", "-o", "-4", "addr"))
		s.awaitReady("steady", long, metav1.ConditionTrue, "")
		requireSteady(t, v, s.get("steady"))
	}

	another := s.create(guest("another", cloudConfig("hostname: another")))
	s.awaitPhase("another", vmi.PhaseRunning)
	s.delete("another")
	s.awaitGone(another)
	s.delete("steady")
	s.awaitGone(v)
}

// openStreams opens a console, on which something was typed and seen, and a screen.
func (u user) openStreams(name string) []*terminal {
	u.t.Helper()
	console := u.console(name)
	console.shows("root@", "\r")
	return []*terminal{console, u.watch(u.screen(name, client.VNCOptions{}))}
}

// opensAnew opens a console and a screen, which work.
func (u user) opensAnew(name string) {
	u.t.Helper()
	var stream net.Conn
	eventually(u.t, soon, func() (err error) {
		stream, err = u.vmis.Console(u.t.Context(), name)
		return err
	})
	next := u.watch(stream)
	next.types("echo next-$((20+1))\r")
	next.shows("next-21", "")
	require.NoError(u.t, u.screen(name, client.VNCOptions{}).Close())
	require.NoError(u.t, next.stream.Close())
}

// killComponent kills the virt-controller that works, or the virt-handler of the
// node, with SIGKILL and waits until the kubelet has started it again.
func (s space) killComponent(component, node string) {
	s.t.Helper()
	ctx := s.t.Context()
	var victim corev1.Pod
	leader, _ := s.controllers()
	l, err := world.kube.CoreV1().Pods(install.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "kubevirt.io=" + component})
	require.NoError(s.t, err)
	for _, p := range l.Items {
		if p.Name == leader || component == "virt-handler" && p.Spec.NodeName == node {
			victim = p
		}
	}
	require.NotEmpty(s.t, victim.Name, "%s does not run", component)
	before := victim.Status.ContainerStatuses[0].RestartCount
	n := traces{t: s.t, node: victim.Spec.NodeName, pod: string(victim.UID)}
	n.kill(component)
	eventually(s.t, long, func() error {
		p, err := world.kube.CoreV1().Pods(install.Namespace).Get(ctx, victim.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if c := p.Status.ContainerStatuses[0]; c.RestartCount == before || !c.Ready {
			return fmt.Errorf("%s restarted %d times, ready: %t", victim.Name, c.RestartCount, c.Ready)
		}
		return nil
	})
}

// replaceComponent replaces the pods of a component with new ones, as an upgrade does.
func replaceComponent(t *testing.T, object string) {
	t.Helper()
	for _, args := range [][]string{{"restart", object}, {"status", object, "--timeout=300s"}} {
		_, err := world.kubectl.Run(t.Context(), append([]string{"-n", install.Namespace, "rollout"}, args...)...)
		require.NoError(t, err)
	}
}

// controllers waits until nothing moves among the virt-controllers, and returns
// the one that works and all of them.
func (s space) controllers() (leader string, all []string) {
	s.t.Helper()
	ctx := context.Background()
	eventually(s.t, long, func() error {
		l, err := world.kube.CoreV1().Pods(install.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "kubevirt.io=virt-controller"})
		if err != nil {
			return err
		}
		all = nil
		for _, p := range l.Items {
			if p.DeletionTimestamp != nil {
				return fmt.Errorf("%s is still there", p.Name)
			}
			all = append(all, p.Name)
		}
		lease, err := world.kube.CoordinationV1().Leases(install.Namespace).Get(ctx, "virt-controller", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if h := lease.Spec.HolderIdentity; h == nil || !slices.Contains(all, *h) {
			return fmt.Errorf("none of %v leads: %+v", all, lease.Spec)
		}
		leader = *lease.Spec.HolderIdentity
		return nil
	})
	return leader, all
}

func TestContainerDisksAreCopiedWhereTheClusterHasNoImageVolumes(t *testing.T) {
	s := newSpace(t)
	s.configureController("CONTAINER_DISKS", "init-copy")
	t.Cleanup(func() { s.configureController("CONTAINER_DISKS", "") })
	s.controllers()
	v := s.create(guest("copied", cloudConfig("hostname: copied")))
	s.awaitPhase("copied", vmi.PhaseRunning)
	p := s.pod(v)
	require.NotEmpty(t, p.Spec.InitContainers)
	for _, vol := range p.Spec.Volumes {
		require.Nil(t, vol.Image, "no image volume is used")
	}
	s.awaitConsole(v, ready)
	s.delete("copied")
	s.awaitGone(v)
}

// configureController runs virt-controller with a setting, or with the one of
// its manifest if the value is empty.
func (s space) configureController(setting, value string) {
	s.t.Helper()
	ctx := context.Background()
	change := setting + "=" + value
	if value == "" {
		change = setting + "-"
	}
	for _, args := range [][]string{{"set", "env", "deployment/virt-controller", change}, {"rollout", "status", "deployment/virt-controller", "--timeout=300s"}} {
		_, err := world.kubectl.Run(ctx, append([]string{"-n", install.Namespace}, args...)...)
		require.NoError(s.t, err)
	}
}

// A drain of a node evicts virt-controller and VMIs at the same time.
func TestAnEvictionIsAnsweredWhileTheControllersMove(t *testing.T) {
	s := newSpace(t)
	s.create(guest("stays", cloudConfig("hostname: stays"), strategy(vmi.EvictionLiveMigrate)))
	v := s.awaitPhase("stays", vmi.PhaseRunning)
	pods := world.kube.CoreV1().Pods(install.Namespace)
	_, controllers := s.controllers()
	tried, granted := s.tryEvictions(v, func(tries func() int64) {
		for _, name := range controllers {
			before := tries()
			eventually(t, long, func() error {
				return pods.EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name}})
			})
			eventually(t, long, func() error {
				if _, err := pods.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
					return fmt.Errorf("%s is still there: %w", name, err)
				}
				return nil
			})
			eventually(t, long, func() error {
				if n := tries(); n < before+2*evictors {
					return fmt.Errorf("%d of %d tries since the eviction of %s", n-before, 2*evictors, name)
				}
				return nil
			})
		}
		s.kubectl("-n", install.Namespace, "rollout", "status", "deployment/virt-controller", "--timeout=300s")
	})
	t.Logf("%d tries", tried)
	require.Zero(t, granted, "of %d", tried)
	s.delete("stays")
	s.awaitGone(v)
}

// evictors is how many try an eviction at a time. Where the host is busy a try takes long.
const evictors = 4

// tryEvictions tries again and again whether the VMI's pod may be evicted, as
// long as the function takes. The function is given how many tries have begun.
func (s space) tryEvictions(v *vmi.VirtualMachineInstance, meanwhile func(tries func() int64)) (tried, granted int64) {
	s.t.Helper()
	name := s.pod(v).Name
	var tries, grants atomic.Int64
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range evictors {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(evictors * 5 * time.Millisecond):
				}
				n := tries.Add(1)
				err := world.kube.CoreV1().Pods(s.name).EvictV1(context.Background(), &policyv1.Eviction{
					ObjectMeta: metav1.ObjectMeta{Name: name}, DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
				})
				if !apierrors.IsTooManyRequests(err) {
					s.t.Logf("%s: try %d: %v", time.Now().Format(time.TimeOnly), n, err)
					grants.Add(1)
				}
			}
		})
	}
	meanwhile(tries.Load)
	close(stop)
	all.Wait()
	return tries.Load(), grants.Load()
}
