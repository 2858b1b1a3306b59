package apiserver

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/podvisor/podvisor/scheduler/controller"
	"github.com/podvisor/podvisor/vmi"
)

// The templates of running VMs are edited: nothing of what runs is touched, and what is
// new is there after the next start.
func TestARollingEditDisturbsNoVM(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	s.play()
	const all = 10
	before := map[string]*vmi.VirtualMachineInstance{}
	for i := range all {
		s.createVM(vmOf(fmt.Sprintf("vm%d", i), vmi.RunAlways))
	}
	for i := range all {
		name := fmt.Sprintf("vm%d", i)
		s.awaitVM(name, func(v *vmi.VirtualMachine) bool { return v.Status.Ready })
		before[name] = s.awaitPhase(name, vmi.PhaseRunning)
	}
	s.awaitGates()
	pods := s.podUIDs()
	writes := len(s.writes.all())
	for i := range all {
		s.editVM(fmt.Sprintf("vm%d", i), `{"spec":{"template":{"spec":{"hostname":"edited","terminationGracePeriodSeconds":7}}}}`)
	}
	for i := range all {
		name := fmt.Sprintf("vm%d", i)
		v := s.awaitVM(name, func(v *vmi.VirtualMachine) bool { return v.Status.Condition(vmi.ConditionRestartRequired) != nil })
		require.Equal(t, int64(1), v.Status.ObservedGeneration)
		require.Equal(t, int64(2), v.Status.DesiredGeneration)
		now := s.awaitPhase(name, vmi.PhaseRunning)
		require.Equal(t, before[name].ResourceVersion, now.ResourceVersion, "nothing of the VMI is written")
	}
	require.Equal(t, pods, s.podUIDs())
	require.Len(t, s.writes.all(), writes+all, "one status of each VM")

	s.ask("vm0", stopRequest(before["vm0"]), startRequest(nil))
	v := s.await("vm0", func(v *vmi.VirtualMachineInstance) bool {
		return v.UID != before["vm0"].UID && v.Status.Phase == vmi.PhaseRunning
	})
	require.Equal(t, "edited", v.Spec.Hostname)
	vm := s.awaitVM("vm0", func(v *vmi.VirtualMachine) bool {
		return v.Status.Ready && v.Status.Condition(vmi.ConditionRestartRequired) == nil
	})
	require.Equal(t, int64(2), vm.Status.ObservedGeneration)

	// What is taken back needs no restart.
	s.editVM("vm1", `{"spec":{"template":{"spec":{"hostname":null,"terminationGracePeriodSeconds":null}}}}`)
	vm = s.awaitVM("vm1", func(v *vmi.VirtualMachine) bool { return v.Status.Condition(vmi.ConditionRestartRequired) == nil })
	require.Equal(t, int64(3), vm.Status.ObservedGeneration)
	v = s.await("vm1", func(v *vmi.VirtualMachineInstance) bool { return v.Annotations[vmi.VMGenerationAnnotation] == "3" })
	require.Equal(t, before["vm1"].UID, v.UID)
}

func TestTheLinkOfAVMFollowsItsTemplateWithFewWrites(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	s.play()
	s.createVM(vmOf("vm", vmi.RunAlways))
	s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.Ready })
	first := s.awaitPhase("vm", vmi.PhaseRunning)
	s.awaitGates()
	pods := s.podUIDs()
	for n, state := range []vmi.InterfaceState{vmi.InterfaceDown, vmi.InterfaceUp} {
		before := len(s.writes.all())
		template := fmt.Sprintf(`[{"name":"default","masquerade":{},"state":%q}]`, state)
		s.editVM("vm", `{"spec":{"template":{"spec":{"domain":{"devices":{"interfaces":`+template+`}}}}}}`)
		generation := int64(n + 2)
		v := s.await("vm", func(v *vmi.VirtualMachineInstance) bool { return v.Spec.Domain.Devices.Interfaces[0].State == state })
		require.Equal(t, first.UID, v.UID)
		require.Equal(t, generation, vmi.StartGeneration(v), "in the same write")
		want := first.Spec.DeepCopy()
		want.Domain.Devices.Interfaces[0].State = state
		require.Equal(t, *want, v.Spec, "nothing else")
		vm := s.awaitVM("vm", func(v *vmi.VirtualMachine) bool { return v.Status.ObservedGeneration == generation })
		require.Nil(t, vm.Status.Condition(vmi.ConditionRestartRequired))
		require.ElementsMatch(t, []string{"PATCH virtualmachines/vm/status 200", "PATCH virtualmachineinstances/vm 200"}, s.writes.all()[before:])
	}
	require.Equal(t, pods, s.podUIDs())
}

// podUIDs are the UIDs of the pods of the namespace.
func (s space) podUIDs() map[types.UID]bool {
	s.t.Helper()
	l, err := s.pods.List(s.t.Context(), metav1.ListOptions{})
	require.NoError(s.t, err)
	out := map[types.UID]bool{}
	for _, p := range l.Items {
		out[p.UID] = true
	}
	return out
}

// noInstances lets no VMI be made in the namespace.
func (s space) noInstances() (lift func()) {
	s.t.Helper()
	quotas := world.kube.CoreV1().ResourceQuotas(s.name)
	hard := corev1.ResourceList{"count/virtualmachineinstances.kubevirt.io": resource.MustParse("0")}
	q, err := quotas.Create(s.t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "vmis"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	q.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: hard}
	_, err = quotas.UpdateStatus(s.t.Context(), q, metav1.UpdateOptions{})
	require.NoError(s.t, err)
	eventually(s.t, func() error {
		_, err := s.vmis.Create(s.t.Context(), guest("probe"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsForbidden(err) {
			return nil
		}
		return fmt.Errorf("VMIs are accepted: %w", err)
	})
	return func() {
		s.t.Helper()
		require.NoError(s.t, quotas.Delete(s.t.Context(), "vmis", metav1.DeleteOptions{}))
	}
}

func TestVMsWhoseVMIsAreRefusedSaySoCostLittleAndGoOn(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	lift := s.noInstances()
	s.controlVMs()
	s.play()
	const all = 20
	for i := range all {
		s.createVM(vmOf(fmt.Sprintf("vm%d", i), vmi.RunAlways))
	}
	for i := range all {
		v := s.awaitVM(fmt.Sprintf("vm%d", i), func(v *vmi.VirtualMachine) bool { return v.Status.Condition(vmi.ConditionFailure) != nil })
		c := v.Status.Condition(vmi.ConditionFailure)
		require.Equal(t, "FailedCreate", c.Reason)
		require.Contains(t, c.Message, "exceeded quota: vmis")
		require.False(t, v.Status.Created)
	}
	before, began := len(s.writes.all()), time.Now()
	time.Sleep(6 * time.Second)
	s.writesMore(before)
	after := s.writes.all()[before:]
	require.LessOrEqual(t, len(after), 2+int(time.Since(began).Seconds()), "%q", after)
	require.Len(t, own(after, "POST virtualmachineinstances 403"), len(after), "%q: neither a status nor a revision is written again", after)
	lift()
	for i := range all {
		v := s.awaitVM(fmt.Sprintf("vm%d", i), func(v *vmi.VirtualMachine) bool { return v.Status.Ready })
		require.Nil(t, v.Status.Condition(vmi.ConditionFailure))
	}
}

// The policy that keeps users from writing these labels does not apply to
// virt-controller: a template must not bring them to a VMI.
func TestAttackATemplateGivesAVMIOnlyWhatItsUserMayWrite(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	s.play()
	v := vmOf("vm", vmi.RunAlways)
	m := &v.Spec.Template.ObjectMeta
	m.Labels = map[string]string{"mine": "yes"}
	for _, k := range vmi.ReservedLabels() {
		m.Labels[k] = "x"
	}
	m.Annotations = map[string]string{"mine": "yes", vmi.VMGenerationAnnotation: "99"}
	m.Name, m.Namespace, m.UID, m.Finalizers = "other", "default", "u", []string{"example.com/mine"}
	m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "u"}}
	stored, err := s.vms().Create(t.Context(), v, metav1.CreateOptions{})
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
		for _, k := range vmi.ReservedLabels() {
			delete(m.Labels, k) // a policy refuses them
		}
		stored, err = s.vms().Create(t.Context(), v, metav1.CreateOptions{})
	}
	require.NoError(t, err)
	got := s.awaitPhase("vm", vmi.PhaseRunning)
	require.Equal(t, map[string]string{"mine": "yes", vmi.NodeNameLabel: "n1"}, got.Labels)
	require.Equal(t, "yes", got.Annotations["mine"])
	require.Equal(t, "1", got.Annotations[vmi.VMGenerationAnnotation])
	require.Equal(t, []string{vmi.Finalizer}, got.Finalizers)
	require.Len(t, got.OwnerReferences, 1)
	require.True(t, metav1.IsControlledBy(got, stored))
}

func TestTheStatusOfAVMSaysWhyItsPodDoesNotRun(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.controlVMs()
	n := s.play()
	n.at(vmi.PhaseScheduling)
	s.createVM(vmOf("vm", vmi.RunAlways))
	p := s.pod(s.awaitPhase("vm", vmi.PhaseScheduling))
	s.awaitPrintable("vm", vmi.StatusStarting)
	s.status(p, func(st *corev1.PodStatus) {
		st.Phase = corev1.PodPending
		st.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available"}}
	})
	s.awaitPrintable("vm", vmi.StatusUnschedulable)
	s.bind(p, "n1")
	s.status(p, func(st *corev1.PodStatus) { st.Conditions = nil })
	s.awaitPrintable("vm", vmi.StatusStarting)
	s.status(p, waiting("ErrImagePull", "no such image"))
	s.awaitPrintable("vm", vmi.StatusErrImagePull)
	n.at("")
	s.awaitPrintable("vm", vmi.StatusRunning)
	s.editVM("vm", `{"spec":{"runStrategy":"Halted"}}`)
	s.awaitPrintable("vm", vmi.StatusStopped)
	n.at(vmi.PhaseScheduling)
	s.editVM("vm", `{"spec":{"runStrategy":"Always"}}`)
	p = s.pod(s.awaitPhase("vm", vmi.PhaseScheduling))
	s.bind(p, "n1")
	s.status(p, waiting("ImagePullBackOff", "Back-off pulling image"))
	s.awaitPrintable("vm", vmi.StatusImagePullBackOff)
}

// Programs compare the revision that a VMI was started from with the spec of its VM.
func TestAStartRevisionIsTheSpecAsItIsStored(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	cfg := asController()
	s.control(func(c *controller.Config) {
		var err error
		c.Dynamic, err = dynamic.NewForConfig(cfg)
		require.NoError(t, err)
	})
	const manifest = "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: vm}\nspec: {runStrategy: Always, template: {metadata: {labels: {a: b}}, spec: {domain: {memory: {guest: 65536Ki}, devices: {}}}}}\n"
	said, err := kubectl(t, manifest, "-n", s.name, "create", "-f", "-")
	require.NoError(t, err, said)
	var data, spec string
	eventually(t, func() error {
		l, err := world.kube.AppsV1().ControllerRevisions(s.name).List(t.Context(), metav1.ListOptions{})
		if err == nil && len(l.Items) != 1 {
			err = fmt.Errorf("%d revisions", len(l.Items))
		}
		if err == nil {
			data = string(l.Items[0].Data.Raw)
		}
		return err
	})
	spec, err = kubectl(t, "", "-n", s.name, "get", "vm", "vm", "-o", "jsonpath={.spec}")
	require.NoError(t, err, spec)
	require.Contains(t, spec, "65536Ki")
	require.JSONEq(t, `{"spec":`+spec+`}`, data)
}
