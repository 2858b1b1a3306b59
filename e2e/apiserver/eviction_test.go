package apiserver

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/retry"

	"github.com/podvisor/podvisor/scheduler/admission"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// reviewEvictions makes the webhooks review evictions too, with the rights of
// virt-controller.
func reviewEvictions(t *testing.T) func(*webhooks) {
	t.Helper()
	return func(w *webhooks) {
		cfg := asController()
		kube, err := kubernetes.NewForConfig(cfg)
		require.NoError(t, err)
		vmis, err := client.New(cfg)
		require.NoError(t, err)
		mux := http.NewServeMux()
		for at, h := range (admission.Webhooks{}).Handlers() {
			mux.Handle(at, h)
		}
		mux.Handle(admission.EvictionPath, admission.Evictions{Kube: kube, VMIs: vmis})
		w.answer(mux)
	}
}

func strategy(s vmi.EvictionStrategy) vmitest.Option {
	return func(v *vmi.VirtualMachineInstance) { v.Spec.EvictionStrategy = &s }
}

// bridged keeps a guest on its node: its address is that of its pod.
func bridged(v *vmi.VirtualMachineInstance) {
	v.Spec.Domain.Devices.Interfaces[0].InterfaceBinding = vmi.InterfaceBinding{Bridge: &vmi.InterfaceBridge{}}
	v.Spec.Domain.Devices.Interfaces[0].Ports = nil
}

// evict requests the eviction of the pod, as kubectl drain does.
func (s space) evict(p *corev1.Pod, dryRun ...string) error {
	s.t.Helper()
	return s.pods.EvictV1(s.t.Context(), &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: p.Name},
		DeleteOptions: &metav1.DeleteOptions{DryRun: dryRun},
	})
}

// awaitEvictionReviews waits until evictions of the pod are reviewed: the API server may have the
// webhooks that complete objects before it has the others.
func (w *webhooks) awaitEvictionReviews(p *corev1.Pod) {
	w.t.Helper()
	eventually(w.t, func() error {
		before := w.reviews.Load()
		if err := w.evict(p, metav1.DryRunAll); w.reviews.Load() == before {
			return errors.Join(errors.New("the eviction is not reviewed"), err)
		}
		return nil
	})
}

// stays checks that the pod is not being deleted.
func (s space) stays(p *corev1.Pod) {
	s.t.Helper()
	now, err := s.pods.Get(s.t.Context(), p.Name, metav1.GetOptions{})
	require.NoError(s.t, err)
	require.Equal(s.t, p.UID, now.UID)
	require.Nil(s.t, now.DeletionTimestamp)
}

// goes checks that the pod is being deleted.
func (s space) goes(p *corev1.Pod) {
	s.t.Helper()
	now, err := s.pods.Get(s.t.Context(), p.Name, metav1.GetOptions{})
	require.NoError(s.t, err)
	require.NotNil(s.t, now.DeletionTimestamp)
}

func TestAnEvictionFollowsTheStrategyOfTheVMI(t *testing.T) {
	t.Parallel()
	w := newWebhooks(t, reviewEvictions(t))
	stop := w.serve()
	w.control()
	for name, s := range map[string]vmi.EvictionStrategy{"none": vmi.EvictionNone, "if-possible": vmi.EvictionLiveMigrateIfPossible} {
		p := w.pod(w.start(name, strategy(s), bridged))
		require.NoError(t, w.evict(p))
		w.goes(p)
	}

	v := w.start("stays", strategy(vmi.EvictionLiveMigrate), bridged)
	p := w.pod(v)
	err := w.evict(p)
	require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
	require.ErrorContains(t, err, "VMI stays is configured with an eviction strategy but is not live-migratable")
	w.stays(p)
	require.Empty(t, w.await("stays", func(*vmi.VirtualMachineInstance) bool { return true }).Status.EvacuationNodeName)

	w.delete("stays")
	require.NoError(t, w.evict(p), "the pod of a VMI that is being deleted is evicted")
	w.goes(p)

	p = w.pod(w.start("outage", strategy(vmi.EvictionLiveMigrate), bridged))
	require.Error(t, w.evict(p))
	stop()
	require.NoError(t, w.evict(p), "while no webhook answers, evictions are allowed")
	w.goes(p)
}

func TestAnEvictionWithStrategyExternalMarksTheVMI(t *testing.T) {
	t.Parallel()
	w := newWebhooks(t, reviewEvictions(t))
	w.serve()
	w.control()
	before := w.start("moves", strategy(vmi.EvictionExternal))
	p := w.pod(before)
	w.awaitEvictionReviews(p)

	err := w.evict(p, metav1.DryRunAll)
	require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
	// kubectl names the dry run in the eviction, others in the request.
	err = world.kube.CoreV1().RESTClient().Post().Namespace(w.name).Resource("pods").Name(p.Name).SubResource("eviction").Param("dryRun", "All").
		Body(&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: p.Name}}).Do(t.Context()).Error()
	require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
	now := w.awaitPhase("moves", vmi.PhaseRunning)
	require.Equal(t, before.ResourceVersion, now.ResourceVersion, "a dry run writes nothing")

	for range 2 {
		err = w.evict(p)
		require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
		require.ErrorContains(t, err, `Eviction triggered evacuation of VMI "`+w.name+`/moves"`)
	}
	w.stays(p)
	now = w.awaitPhase("moves", vmi.PhaseRunning)
	require.Equal(t, "n1", now.Status.EvacuationNodeName)
	require.NoError(t, w.report(now, "n1", phase(vmi.PhaseSucceeded)))
	now = w.awaitPhase("moves", vmi.PhaseSucceeded)
	require.Equal(t, "n1", now.Status.EvacuationNodeName, "the mark stays")
	require.NoError(t, w.evict(p), "what has ended is evicted")
}

// forbidEvictions makes a PodDisruptionBudget of the pods with the label that permits no eviction,
// as the controller of Kubernetes writes it.
func (s space) forbidEvictions(label, value string) {
	s.t.Helper()
	budgets := world.kube.PolicyV1().PodDisruptionBudgets(s.name)
	b, err := budgets.Create(s.t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: value},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{label: value}}},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: b.Generation, ExpectedPods: 1, CurrentHealthy: 1, DesiredHealthy: 1}
	_, err = budgets.UpdateStatus(s.t.Context(), b, metav1.UpdateOptions{})
	require.NoError(s.t, err)
}

// TestADisruptionBudgetKeepsPodsAndNoGuestThatMoves is about a PodDisruptionBudget that permits no
// eviction: a pod whose guest would end stays, and a guest that can move leaves it first.
func TestADisruptionBudgetKeepsPodsAndNoGuestThatMoves(t *testing.T) {
	t.Parallel()
	w := newWebhooks(t, reviewEvictions(t))
	w.serve()
	w.control()
	const byBudget = "Cannot evict pod as it would violate the pod's disruption budget."
	labelled := func(v *vmi.VirtualMachineInstance) { v.Labels = map[string]string{"budget": v.Name} }
	for name, s := range map[string]vmi.EvictionStrategy{"none": vmi.EvictionNone, "if-possible": vmi.EvictionLiveMigrateIfPossible} {
		w.forbidEvictions("budget", name)
		p := w.pod(w.start(name, strategy(s), bridged, labelled))
		w.awaitEvictionReviews(p)
		err := w.evict(p)
		require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
		require.ErrorContains(t, err, byBudget)
		w.stays(p)
	}

	w.forbidEvictions("budget", "moves")
	v := w.start("moves", strategy(vmi.EvictionLiveMigrate), labelled)
	p := w.pod(v)
	require.Equal(t, "moves", p.Labels["budget"], "the budget is that of the pod")
	w.awaitEvictionReviews(p)
	err := w.evict(p)
	require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
	require.ErrorContains(t, err, `Eviction triggered evacuation of VMI "`+w.name+`/moves"`)
	require.NotContains(t, err.Error(), byBudget)
	w.stays(p)
	w.node()(corev1.ConditionTrue)
	second := w.awaitTarget("moves")
	w.bind(second, w.name)
	w.status(second, running)
	w.await("moves", func(v *vmi.VirtualMachineInstance) bool { return v.Status.MigrationState != nil })
	require.NoError(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error { // virt-controller writes too
		return w.report(w.latest(v), w.name, func(s *vmi.VirtualMachineInstanceStatus) {
			s.NodeName = w.name
			s.Evacuate("", metav1.Now())
			s.MigrationState.Completed, s.MigrationState.EndTimestamp = true, new(metav1.Now())
		})
	}), "the guest has moved")

	w.status(p, exited(0, metav1.Now(), ""))
	err = w.evict(p) // virt-controller may have removed it
	require.True(t, err == nil || apierrors.IsNotFound(err), "the pod that its guest has left is evicted: the drain ends: %v", err)
	_, err = w.pods.Get(t.Context(), p.Name, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "a pod that has ended is gone at once: %v", err)
	w.stays(second)
}

// awaitTarget waits for the pod that the VMI is to move to.
func (s space) awaitTarget(name string) *corev1.Pod {
	s.t.Helper()
	var p *corev1.Pod
	eventually(s.t, func() error {
		l, err := s.pods.List(s.t.Context(), metav1.ListOptions{LabelSelector: vmi.MigrationJobLabel})
		if err != nil {
			return err
		}
		for n := range l.Items {
			if p = &l.Items[n]; p.Annotations[vmi.DomainAnnotation] == name {
				return nil
			}
		}
		return fmt.Errorf("VMI %s has no target", name)
	})
	return p
}

func TestOnlyThePodsOfVMIsAreReviewed(t *testing.T) {
	t.Parallel()
	w := newWebhooks(t, reviewEvictions(t))
	w.serve()
	stop := w.control()
	v := w.start("vm", strategy(vmi.EvictionExternal))
	mine := w.pod(v)
	w.awaitEvictionReviews(mine)

	other := mine.DeepCopy()
	other.ObjectMeta = metav1.ObjectMeta{Name: "other"}
	other.Spec.NodeName = ""
	add := func(pods typedcorev1.PodInterface, p *corev1.Pod) *corev1.Pod {
		p, err := pods.Create(t.Context(), p, metav1.CreateOptions{})
		require.NoError(t, err)
		w.bind(p, "n2")
		w.status(p, running)
		return p
	}
	before := w.reviews.Load()
	p := add(w.pods, other)
	require.NoError(t, w.evict(p))
	w.goes(p)
	require.Equal(t, before, w.reviews.Load(), "a pod of another name is not reviewed")

	// Another pod of the VMI, which is not the one that it runs in. virt-controller would delete
	// it: there is no node n2.
	stop()
	p = w.target(v)
	before = w.reviews.Load()
	require.ErrorContains(t, w.evict(p), "Eviction request for target Pod")
	require.Equal(t, before+1, w.reviews.Load())
	require.Empty(t, w.awaitPhase("vm", vmi.PhaseRunning).Status.EvacuationNodeName)
}

// evictAs requests the eviction of the pod with a client of another account.
func (s space) evictAs(kube kubernetes.Interface, p *corev1.Pod) error {
	return kube.CoreV1().Pods(s.name).EvictV1(s.t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: p.Name}})
}
