package apiserver

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// The tests of this file that take the policy from all VMIs do not run beside
// others.

// withoutPolicy removes the policy that gives VMIs their finalizer, until the test
// ends.
func withoutPolicy(t *testing.T) {
	t.Helper()
	bindings := world.kube.AdmissionregistrationV1().MutatingAdmissionPolicyBindings()
	const name = "finalizer.kubevirt.io"
	b, err := bindings.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, bindings.Delete(t.Context(), name, metav1.DeleteOptions{}))
	ctx := context.Background() // also of the cleanup
	inForce := func() bool {
		v, err := world.vmis.VirtualMachineInstances("default").Create(ctx, guest("probe"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsServiceUnavailable(err) {
			return false // as it comes, it knows no kinds for some seconds
		}
		require.NoError(t, err)
		return slices.Contains(v.Finalizers, vmi.Finalizer)
	}
	eventually(t, func() error {
		if inForce() {
			return errors.New("the policy is in force")
		}
		return nil
	})
	t.Cleanup(func() {
		b.ResourceVersion, b.UID = "", ""
		_, err := bindings.Create(ctx, b, metav1.CreateOptions{})
		require.NoError(t, err)
		eventually(t, func() error {
			if !inForce() {
				return errors.New("the policy is not in force")
			}
			return nil
		})
	})
}

func TestAVMIWithoutItsFinalizerGetsItFromTheController(t *testing.T) {
	s := newSpace(t)
	withoutPolicy(t)
	v := s.create(guest("vm"))
	require.Empty(t, v.Finalizers)
	s.control()
	v = s.awaitPhase(v.Name, vmi.PhaseScheduling)
	require.Equal(t, []string{vmi.Finalizer}, v.Finalizers)
	require.Equal(t, []string{"PATCH virtualmachineinstances/vm 200", "POST pods 201", "PATCH virtualmachineinstances/vm/status 200"}, s.writes.all())

	running := s.start("running")
	running.Finalizers = nil
	_, err := s.vmis.Update(t.Context(), running, metav1.UpdateOptions{})
	require.NoError(t, err)
	v = s.await("running", func(v *vmi.VirtualMachineInstance) bool { return slices.Contains(v.Finalizers, vmi.Finalizer) })
	require.Equal(t, vmi.PhaseRunning, v.Status.Phase)
	require.Equal(t, running.Status, v.Status)
}

func TestAnUpdateWithoutTheFinalizerKeepsItUnlessTheVMIIsDeleted(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.create(guest("vm"))
	none := []byte(`{"metadata":{"finalizers":null}}`)
	v, err := s.vmis.Patch(t.Context(), "vm", types.MergePatchType, none, metav1.PatchOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{vmi.Finalizer}, v.Finalizers)
	v, err = s.vmis.Patch(t.Context(), "vm", types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/mine"]}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"example.com/mine", vmi.Finalizer}, v.Finalizers)

	c, err := client.New(asController())
	require.NoError(t, err)
	v, err = c.VirtualMachineInstances(s.name).Patch(t.Context(), "vm", types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/mine"]}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"example.com/mine"}, v.Finalizers, "virt-controller may remove it: Podvisor may be about to be deleted")
	v, err = s.vmis.Patch(t.Context(), "vm", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"example.com/mine", vmi.Finalizer}, v.Finalizers)
	s.delete("vm")
	_, err = s.vmis.Patch(t.Context(), "vm", types.MergePatchType, none, metav1.PatchOptions{})
	require.NoError(t, err)
	s.awaitGone("vm")
}

// orphan takes the owner reference from the pod of a VMI that is deleted with
// --cascade=orphan, as Kubernetes' garbage collector does.
func (s space) orphan(name string, p *corev1.Pod) {
	s.t.Helper()
	require.NoError(s.t, s.vmis.Delete(s.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)}))
	_, err := s.pods.Patch(s.t.Context(), p.Name, types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`), metav1.PatchOptions{})
	require.NoError(s.t, err)
	_, err = s.vmis.Patch(s.t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":["`+vmi.Finalizer+`"]}}`), metav1.PatchOptions{})
	require.NoError(s.t, err)
}

// awaitLeaving waits until the pod is being deleted.
func (s space) awaitLeaving(p *corev1.Pod) {
	s.t.Helper()
	eventually(s.t, func() error {
		now, err := s.pods.Get(s.t.Context(), p.Name, metav1.GetOptions{})
		if err == nil && now.DeletionTimestamp == nil {
			err = errors.New("the pod is not being deleted")
		}
		return err
	})
}

func TestAnOrphanedPodEndsBeforeItsVMI(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]func(space, *corev1.Pod){
		"before it runs": func(s space, p *corev1.Pod) { s.awaitLeaving(p) },
		"while it runs": func(s space, p *corev1.Pod) {
			s.status(p, running)
			require.NoError(s.t, s.report(s.awaitPhase("vm", vmi.PhaseScheduled), "n1", phase(vmi.PhaseRunning)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSpace(t)
			s.control()
			p := s.pod(s.create(guest("vm")))
			s.bind(p, "n1")
			if name == "while it runs" {
				play(s, p)
				s.orphan("vm", p)
			} else {
				s.awaitPhase("vm", vmi.PhaseScheduling)
				s.orphan("vm", p)
				play(s, p)
			}
			s.awaitPhase(s.create(guest("later")).Name, vmi.PhaseScheduling)
			_, err := s.vmis.Get(t.Context(), "vm", metav1.GetOptions{})
			require.NoError(t, err, "the VMI is there as long as its guest may run")
			s.vanish(p)
			if name == "while it runs" {
				s.nothingLeft("vm")
			}
			s.awaitGone("vm")
		})
	}
}

func TestThePodOfAVMIThatIsGoneEndsAndTheNextVMIOfTheNameWaits(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.control()
	v := s.start("vm")
	p := s.pod(v)
	s.orphan("vm", p)
	_, err := s.vmis.Patch(t.Context(), "vm", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	s.awaitGone("vm")
	s.create(guest("vm"))
	s.awaitLeaving(p)
	c := s.awaitReason("vm", vmi.ConditionSynchronized, "PreviousPodExists")
	require.Contains(t, c.Message, p.Name)
	l, err := s.pods.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, l.Items, 1, "only the pod of the VMI that is gone")
	s.vanish(p)
	next := s.awaitPhase("vm", vmi.PhaseScheduling)
	require.Equal(t, pod.Name(next), s.pod(next).Name)
}

func TestAVMIThatIsDeletedBeforeItRunsAndThatOthersKeepHasFailed(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.control()
	v := guest("vm")
	v.Finalizers = []string{"example.com/mine"}
	v = s.create(v)
	s.pod(v)
	s.awaitPhase("vm", vmi.PhaseScheduling)
	s.delete("vm")
	v = s.awaitPhase("vm", vmi.PhaseFailed)
	require.Equal(t, "Cancelled", v.Status.Reason)
	v = s.await("vm", func(v *vmi.VirtualMachineInstance) bool { return !slices.Contains(v.Finalizers, vmi.Finalizer) })
	require.Equal(t, "the VMI was deleted before its guest ran", v.Status.Condition(vmi.ConditionReady).Message)
	_, err := s.vmis.Patch(t.Context(), "vm", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	s.awaitGone("vm")
}
