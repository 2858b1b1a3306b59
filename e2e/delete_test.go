package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// victim is a VMI that is deleted, and the next one of its name.
type victim struct {
	name        string
	remove      func(space, *vmi.VirtualMachineInstance)
	first, next *vmi.VirtualMachineInstance
}

// idle is a VMI whose firmware finds nothing to start.
func idle(name string) *vmi.VirtualMachineInstance {
	v := vmitest.New(vmitest.WithName(name), vmitest.WithEmptyDisk("empty", "1Mi"), vmitest.WithMasquerade("default"), vmitest.WithGracePeriod(1))
	v.UID = ""
	return v
}

// victims makes a VMI for each way to delete it, and waits until it has a pod, or
// runs.
func (s space) victims(state vmi.Phase) []*victim {
	s.t.Helper()
	var all []*victim
	for way, remove := range deletions() {
		name := way + "-" + strings.ToLower(string(state))
		all = append(all, &victim{name: name, remove: remove, first: s.create(idle(name))})
	}
	for _, c := range all {
		if state == vmi.PhaseRunning {
			c.first = s.awaitPhase(c.name, state)
			continue
		}
		eventually(s.t, long, func() error {
			if len(s.pods(c.first)) == 0 {
				return fmt.Errorf("%s has no pod", c.name)
			}
			return nil
		})
	}
	return all
}

// again creates another VMI of the name, as soon as the API server takes it.
func (s space) again(all []*victim) {
	s.t.Helper()
	eventually(s.t, long, func() error {
		var errs []error
		for _, c := range all {
			if c.next != nil {
				continue
			}
			v := idle(c.name)
			v.Namespace = s.name
			if v, err := world.vmis.VirtualMachineInstances(s.name).Create(s.t.Context(), v, metav1.CreateOptions{}); err == nil {
				c.next = v
			} else {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	})
}

// However a VMI is deleted, its guest ends, and no other one of its name runs
// beside it.
func TestAGuestEndsHoweverItsVMIIsDeleted(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	seen := s.watchPods()
	all := s.victims(vmi.PhaseRunning)
	all = append(all, s.victims(vmi.PhaseScheduling)...)
	for _, c := range all {
		c.remove(s, c.first)
	}
	s.again(all)
	eventually(t, long, func() error {
		for _, c := range all {
			if p := s.pods(c.first); len(p) != 0 {
				return fmt.Errorf("pod %s of the VMI that was deleted is still there: %s", p[0].Name, p[0].Status.Phase)
			}
			if len(s.pods(c.next)) == 0 {
				return fmt.Errorf("the next VMI has no pod: %+v", s.get(c.name).Status.Conditions)
			}
		}
		return nil
	})
	for _, c := range all {
		s.delete(c.name)
	}
	for _, c := range all {
		s.awaitGone(c.next)
	}
	for _, node := range []string{"n1", "n2"} {
		n := traces{t: t, node: node}
		require.Empty(t, n.run("pgrep -a -f '[g]uest="+s.name+"_' || true"), "a guest is left on %s", node)
	}
	eventually(t, soon, func() error {
		seen.mu.Lock()
		defer seen.mu.Unlock()
		require.Len(t, seen.alive, len(all))
		for name, pods := range seen.alive {
			if len(pods) != 0 {
				return fmt.Errorf("pods of %s are left: %v", name, pods)
			}
		}
		return nil
	})
	require.Empty(t, seen.twice, "two pods of one name")
}
