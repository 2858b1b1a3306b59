package apiserver

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/podvisor/podvisor/e2e/simulate"
	"github.com/podvisor/podvisor/vmi"
)

// simulateNodes runs nodes for the pods of the namespace until the test ends.
func (s space) simulateNodes(guest simulate.Guest) *simulate.Kubelets {
	s.t.Helper()
	meta, err := metadata.NewForConfig(world.config)
	require.NoError(s.t, err)
	dir, err := os.MkdirTemp("", "nodes")
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	nodes := []string{s.name + "-a", s.name + "-b"}
	k, err := simulate.NewKubelets(simulate.Config{
		Kube: world.kube, Nodes: nodes, Namespace: s.name, Dir: dir, Collect: meta,
		Guest: func(*corev1.Pod) simulate.Guest { return guest },
	})
	require.NoError(s.t, err)
	h := simulate.Handlers{Nodes: nodes, Pods: k.Pods, Access: func(node string) (*rest.Config, error) { return asHandler(node), nil }}
	running := func(run func(context.Context) error) {
		background(s.t, func(ctx context.Context) error {
			err := run(ctx)
			if err != nil {
				s.t.Errorf("simulated nodes: %v", err)
			}
			return err
		})
	}
	running(k.Run)
	running(h.Run)
	return k
}

// awaitNoPod waits until the VMI has no pod any more.
func (s space) awaitNoPod(p *corev1.Pod) {
	s.t.Helper()
	eventually(s.t, func() error {
		_, err := s.pods.Get(s.t.Context(), p.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("pod %s is still there: %w", p.Name, err)
	})
}

func TestSimulatedNodesRunVMIsAsRealOnesDo(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	k := s.simulateNodes(simulate.Guest{})
	s.control()

	s.create(guest("vm"))
	v := s.awaitPhase("vm", vmi.PhaseRunning)
	p := s.pod(v)
	require.Equal(t, p.Spec.NodeName, v.Status.NodeName)
	require.Equal(t, p.Status.PodIP, v.Status.Interfaces[0].IP)
	eventually(t, func() error {
		if c := s.await("vm", func(*vmi.VirtualMachineInstance) bool { return true }).Status.Condition(vmi.ConditionReady); c == nil || c.Status != corev1.ConditionTrue {
			return fmt.Errorf("the VMI is not ready: %+v", c)
		}
		return nil
	})
	require.Len(t, k.Launchers(), 1)

	s.delete("vm")
	s.awaitGone("vm")
	s.awaitNoPod(p)
	require.Empty(t, k.Launchers())
	s.awaitEvents(v, "Normal SuccessfulCreate ×1", "Normal Started ×1", "Normal ShuttingDown ×1", "Normal Deleted ×1")
}

func TestSimulatedGuestsEndAsRealOnesDo(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	k := s.simulateNodes(simulate.Guest{Off: time.Minute})
	s.control()
	of := func(name string) *simulate.Launcher {
		t.Helper()
		s.create(guest(name))
		s.awaitPhase(name, vmi.PhaseRunning)
		for _, l := range k.Launchers() {
			if l.VMI().Name == name {
				return l
			}
		}
		t.Fatal("no launcher of " + name)
		return nil
	}
	of("crashed").Crash("")
	require.Equal(t, "Crashed", s.awaitPhase("crashed", vmi.PhaseFailed).Status.Reason)
	of("killed").Kill()
	require.NotEmpty(t, s.awaitPhase("killed", vmi.PhaseFailed).Status.Reason)

	off := of("off")
	p := s.pod(&vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Name: "off", UID: off.VMI().UID}})
	require.NoError(t, s.pods.Delete(t.Context(), p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}))
	require.Equal(t, vmi.PhaseFailed, s.awaitPhase("off", vmi.PhaseFailed).Status.Phase)
	s.awaitNoPod(p)
	require.Empty(t, k.Launchers())
}
