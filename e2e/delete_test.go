package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// noFinalizers removes all finalizers of a VMI that is being deleted, if it is
// there.
func (s space) noFinalizers(name string) {
	s.t.Helper()
	_, err := world.vmis.VirtualMachineInstances(s.name).Patch(s.t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) {
		require.NoError(s.t, err)
	}
}

// deleteBy deletes a VMI with this propagation policy.
func deleteBy(p metav1.DeletionPropagation) func(space, *vmi.VirtualMachineInstance) {
	return func(s space, v *vmi.VirtualMachineInstance) {
		s.t.Helper()
		require.NoError(s.t, world.vmis.VirtualMachineInstances(s.name).Delete(s.t.Context(), v.Name, metav1.DeleteOptions{PropagationPolicy: &p}))
	}
}

// awaitOrphaned waits until the VMI's pod has no owner, or is gone.
func (s space) awaitOrphaned(v *vmi.VirtualMachineInstance) {
	s.t.Helper()
	eventually(s.t, long, func() error {
		for _, p := range s.pods(v) {
			if len(p.OwnerReferences) > 0 {
				return fmt.Errorf("pod %s has an owner", p.Name)
			}
		}
		return nil
	})
}

// deletions are the ways in which a user deletes a VMI.
func deletions() map[string]func(space, *vmi.VirtualMachineInstance) {
	by := deleteBy
	return map[string]func(space, *vmi.VirtualMachineInstance){
		"background": by(metav1.DeletePropagationBackground),
		"foreground": by(metav1.DeletePropagationForeground),
		"orphan": func(s space, v *vmi.VirtualMachineInstance) {
			s.kubectl("delete", "vmi", v.Name, "--cascade=orphan", "--wait=false")
		},
		"force": func(s space, v *vmi.VirtualMachineInstance) {
			s.kubectl("delete", "vmi", v.Name, "--force", "--grace-period=0", "--wait=false")
		},
		"no-finalizers": func(s space, v *vmi.VirtualMachineInstance) {
			by(metav1.DeletePropagationBackground)(s, v)
			s.noFinalizers(v.Name)
		},
		"orphan-no-finalizers": func(s space, v *vmi.VirtualMachineInstance) {
			by(metav1.DeletePropagationOrphan)(s, v)
			s.awaitOrphaned(v)
			s.noFinalizers(v.Name)
		},
	}
}

// census watches the launcher pods of a namespace.
type census struct {
	mu    sync.Mutex
	alive map[string]map[types.UID]string // the pods that may run a guest, by the name of their VMI
	twice []string
}

// watchPods counts the launcher pods of the namespace until the test ends.
func (s space) watchPods() *census {
	s.t.Helper()
	c := &census{alive: map[string]map[types.UID]string{}}
	ctx, cancel := context.WithCancel(context.Background())
	w, err := world.kube.CoreV1().Pods(s.name).Watch(ctx, metav1.ListOptions{LabelSelector: vmi.AppLabel + "=" + vmi.LauncherApp})
	require.NoError(s.t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for e := range w.ResultChan() {
			if p, ok := e.Object.(*corev1.Pod); ok {
				c.note(p, e.Type == watch.Deleted)
			}
		}
	})
	s.t.Cleanup(func() { cancel(); w.Stop(); wg.Wait() })
	return c
}

func (c *census) note(p *corev1.Pod, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := p.Annotations[vmi.DomainAnnotation]
	if c.alive[name] == nil {
		c.alive[name] = map[types.UID]string{}
	}
	ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed ||
		slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
			return s.Name == vmi.ComputeContainer && s.State.Terminated != nil
		})
	if gone || ended {
		delete(c.alive[name], p.UID)
		return
	}
	c.alive[name][p.UID] = p.Name
	if len(c.alive[name]) > 1 {
		c.twice = append(c.twice, fmt.Sprintf("%s: %v", name, c.alive[name]))
	}
}

// However a VMI is deleted, its guest ends, and no other one of its name runs
// beside it.
func TestAGuestEndsHoweverItsVMIIsDeleted(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	c := s.watchPods()
	t.Run("all", func(t *testing.T) {
		for way, remove := range deletions() {
			for _, state := range []vmi.Phase{vmi.Scheduling, vmi.Running} {
				t.Run(fmt.Sprintf("%s, %s", way, state), func(t *testing.T) {
					t.Parallel()
					s := space{t, s.name}
					name := way + map[vmi.Phase]string{vmi.Scheduling: "-starting", vmi.Running: "-running"}[state]
					make := func() *vmi.VirtualMachineInstance {
						return guest(name, cloudConfig("hostname: deleted"), vmitest.WithGracePeriod(1))
					}
					v := s.create(make())
					if state == vmi.Running {
						v = s.awaitPhase(name, state)
					} else {
						eventually(t, long, func() error {
							if len(s.pods(v)) == 0 {
								return fmt.Errorf("%s has no pod", name)
							}
							return nil
						})
					}
					remove(s, v)
					// Another one at once, as soon as the API server takes it.
					var again *vmi.VirtualMachineInstance
					eventually(t, long, func() (err error) {
						next := make()
						next.Namespace = s.name
						again, err = world.vmis.VirtualMachineInstances(s.name).Create(t.Context(), next, metav1.CreateOptions{})
						return err
					})
					eventually(t, long, func() error {
						if p := s.pods(v); len(p) != 0 {
							return fmt.Errorf("pod %s of the VMI that was deleted is still there: %s", p[0].Name, p[0].Status.Phase)
						}
						if len(s.pods(again)) == 0 {
							return fmt.Errorf("the next VMI has no pod: %+v", s.get(name).Status.Conditions)
						}
						return nil
					})
					s.delete(name)
					s.awaitGone(again)
				})
			}
		}
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Empty(t, c.twice, "two pods of one name")
	for name, pods := range c.alive {
		require.Empty(t, pods, name)
	}
	for _, node := range []string{"n1", "n2"} {
		n := traces{t: t, node: node}
		require.Empty(t, n.run("pgrep -a -f '[g]uest="+s.name+"_' || true"), "a guest is left on %s", node)
	}
}
