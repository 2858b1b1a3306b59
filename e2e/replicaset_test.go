package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/e2e/images"
	"github.com/podvisor/podvisor/scheduler/replicaset"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// setOf is a set of VMIs with the label app=<name>.
func setOf(name string, n int32, options ...vmitest.Option) *vmi.VirtualMachineInstanceReplicaSet {
	o := vmitest.NewReplicaSet(n, append([]vmitest.Option{vmitest.WithName(name), vmitest.WithMemory("64Mi"), vmitest.WithMasquerade("default"), vmitest.WithGracePeriod(0)}, options...)...)
	o.ObjectMeta = metav1.ObjectMeta{Name: name}
	o.Spec.Template.ObjectMeta.Labels = map[string]string{"app": name}
	o.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	return o
}

// editor is a user who has only the role edit.
const editor = "editor"

func (s space) makeEditor() {
	s.t.Helper()
	_, err := world.kube.RbacV1().RoleBindings(s.name).Create(s.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: editor}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: editor}},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	eventually(s.t, soon, func() error {
		_, err := world.kubectl.Run(s.t.Context(), "-n", s.name, "--as", editor, "auth", "can-i", "patch", "vmirs/scale")
		return err
	})
}

// edit runs kubectl as a user with the role edit.
func (s space) edit(args ...string) {
	s.t.Helper()
	s.kubectl(append([]string{"--as", editor}, args...)...)
}

// applySet writes a set as a user with the role edit.
func (s space) applySet(o *vmi.VirtualMachineInstanceReplicaSet) {
	s.t.Helper()
	text, err := json.Marshal(o)
	require.NoError(s.t, err)
	_, err = world.kubectl.RunInput(s.t.Context(), strings.NewReader(string(text)), "-n", s.name, "--as", editor, "apply", "-f", "-")
	require.NoError(s.t, err)
}

func (s space) getSet(name string) *vmi.VirtualMachineInstanceReplicaSet {
	s.t.Helper()
	o, err := world.vmis.VirtualMachineInstanceReplicaSets(s.name).Get(s.t.Context(), name, metav1.GetOptions{})
	require.NoError(s.t, err)
	return o
}

// vmisOf are the VMIs with the label app=<name>.
func (s space) vmisOf(name string) []vmi.VirtualMachineInstance {
	s.t.Helper()
	l, err := world.vmis.VirtualMachineInstances(s.name).List(s.t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
	require.NoError(s.t, err)
	return l.Items
}

// awaitSet waits until the set has so many VMIs, all are ready, and its status says so. What the
// status says alone may be from before one has ended.
func (s space) awaitSet(name string, n int) []vmi.VirtualMachineInstance {
	s.t.Helper()
	var all []vmi.VirtualMachineInstance
	eventually(s.t, 2*long, func() error {
		st := s.getSet(name).Status
		if all = s.vmisOf(name); len(all) != n || st.Replicas != int32(n) || st.ReadyReplicas != int32(n) {
			return fmt.Errorf("%d VMIs, not %d: %+v", len(all), n, st)
		}
		for _, v := range all {
			if ready := v.Status.Condition(vmi.ConditionReady); ready == nil || ready.Status != corev1.ConditionTrue {
				return fmt.Errorf("%s is %s and not ready: %+v", v.Name, v.Status.Phase, ready)
			}
		}
		return nil
	})
	return all
}

// awaitEnd waits until the VMI has ended, or is gone.
func (s space) awaitEnd(name string, uid types.UID) {
	s.t.Helper()
	eventually(s.t, long, func() error {
		v, err := world.vmis.VirtualMachineInstances(s.name).Get(s.t.Context(), name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err == nil && v.UID == uid && !v.Status.Phase.Final():
			return fmt.Errorf("%s is %s", name, v.Status.Phase)
		}
		return err
	})
}

func uids(all []vmi.VirtualMachineInstance) []string {
	var out []string
	for _, v := range all {
		out = append(out, string(v.UID))
	}
	slices.Sort(out)
	return out
}

// The guests stay in their firmware, which costs little and is Running all the same.
func TestASetIsScaledWhileItsGuestsAreKilled(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.makeEditor()
	began := time.Now()
	s.applySet(setOf("web", 5))
	all := s.awaitSet("web", 5)
	t.Logf("5 VMIs are ready after %s", time.Since(began).Round(time.Second))

	for i := range 2 {
		s.traces(&all[i]).kill("qemu-system")
	}
	s.edit("scale", "vmirs/web", "--replicas=2")
	left := s.awaitSet("web", 2)
	s.edit("scale", "vmirs/web", "--replicas=6")
	for i := range left {
		s.traces(&left[i]).kill("qemu-system")
	}
	for _, v := range left { // until it is seen, the dead count
		s.awaitEnd(v.Name, v.UID)
	}
	six := s.awaitSet("web", 6)
	for _, v := range left {
		require.NotContains(t, uids(six), string(v.UID), "a guest that was killed is replaced")
	}
	s.edit("scale", "vmirs/web", "--replicas=2")
	two := s.awaitSet("web", 2)
	require.Subset(t, uids(six), uids(two))

	// One is taken out, and another takes its place; one more is adopted.
	s.edit("label", "vmi/"+two[0].Name, "app=debug", "--overwrite")
	s.awaitSet("web", 2)
	require.Empty(t, s.get(two[0].Name).OwnerReferences)
	s.edit("scale", "vmirs/web", "--replicas=3")
	s.edit("label", "vmi/"+two[0].Name, "app=web", "--overwrite")
	s.awaitSet("web", 3)
	s.edit("scale", "vmirs/web", "--replicas=2")
	two = s.awaitSet("web", 2)

	s.edit("delete", "vmirs/web", "--cascade=orphan")
	for _, v := range two {
		now := s.get(v.Name)
		require.Equal(t, v.UID, now.UID)
		require.Nil(t, now.DeletionTimestamp)
		require.Empty(t, now.OwnerReferences)
	}
	s.applySet(setOf("web", 2))
	require.Equal(t, uids(two), uids(s.awaitSet("web", 2)), "a set of the same selector takes them over")

	ended := []traces{s.traces(&two[0]), s.traces(&two[1])}
	s.edit("delete", "vmirs/web", "--cascade=foreground", "--timeout=300s")
	require.Empty(t, s.vmisOf("web"), "the set goes last")
	s.applySet(setOf("web", 1))
	last := s.awaitSet("web", 1)
	ended = append(ended, s.traces(&last[0]))
	s.edit("delete", "vmirs/web", "--timeout=300s")
	s.awaitGone(&last[0])
	for _, n := range ended {
		n.awaitNone()
	}
}

func TestASetOfABrokenTemplateTriesOneVMIAtATime(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.endTurn() // nothing boots
	s.makeEditor()
	s.applySet(setOf("broken", 4, vmitest.WithContainerDisk("root", images.Reference("tools")))) // it has no disk
	var c *vmi.Condition
	eventually(t, long, func() error {
		st := s.getSet("broken").Status
		if c = st.Condition(vmi.ConditionReplicaFailure); c == nil || st.Replicas > 0 {
			return fmt.Errorf("the set has not failed: %+v", st)
		}
		return nil
	})
	require.Equal(t, replicaset.FailedStart, c.Reason)
	require.Contains(t, c.Message, "CannotStart")
	// What is made after the first four says how many failures were before it.
	eventually(t, long, func() error {
		failed, trying := 0, 0
		all := s.vmisOf("broken")
		for _, v := range all {
			switch {
			case v.Annotations[replicaset.FailuresAnnotation] == "":
			case v.Status.Phase == vmi.PhaseFailed:
				failed++
			default:
				trying++
			}
		}
		require.LessOrEqual(t, trying, 1, "the others wait")
		if failed == 0 || trying > 0 || len(all) != 4 {
			return fmt.Errorf("no second try has failed: %d of %d", failed, len(all))
		}
		return nil
	})
	s.edit("delete", "vmirs/broken", "--cascade=foreground", "--timeout=300s")
	require.Empty(t, s.vmisOf("broken"))
}
