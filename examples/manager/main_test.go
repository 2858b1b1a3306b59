package main

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// world is a cluster in memory: vmi/client/fake has the kinds of Podvisor, and client-go's
// fake clientset has pods, nodes, events and the lease.
type world struct {
	api  *fake.Server
	kube *kubefake.Clientset
}

// replica is one process of the program.
type replica struct {
	metrics *prometheus.Registry
	kill    context.CancelFunc
	ended   chan error
}

// start starts a replica. Its kill ends it and does not give the lease back, as a process
// that is killed does not.
func (w world) start(t *testing.T, name string) replica {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, vmi.AddToScheme(scheme))
	skip := true
	mgr, err := ctrl.NewManager(w.api.Config(), ctrl.Options{
		Scheme: scheme,
		// The fake has no discovery.
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			m := meta.NewDefaultRESTMapper(nil)
			m.Add(vmi.VirtualMachineInstances.GroupVersionKind, meta.RESTScopeNamespace)
			return m, nil
		},
		// On a busy host too, no replica loses the lead by its time.
		LeaderElection: true, LeaderElectionResourceLockInterface: w.lock(name),
		LeaseDuration: ptr(10 * time.Minute), RenewDeadline: ptr(9 * time.Minute), RetryPeriod: ptr(100 * time.Millisecond),
		Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: config.Controller{SkipNameValidation: &skip}, // both replicas are in this process
	})
	require.NoError(t, err)
	api, err := client.New(w.api.Config())
	require.NoError(t, err)
	r := replica{metrics: prometheus.NewRegistry(), ended: make(chan error, 1)}
	_, err = add(mgr, clients{vmis: api, kube: w.kube}, pod.Launcher{Image: "registry.example/virt-launcher:v1"}, "kubevirt", nil, r.metrics)
	require.NoError(t, err)
	var ctx context.Context
	ctx, r.kill = context.WithCancel(t.Context())
	go func() { r.ended <- mgr.Start(ctx) }()
	return r
}

func (w world) lock(identity string) resourcelock.Interface {
	return &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "virt-controller"}, Client: w.kube.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}
}

func ptr[T any](v T) *T { return &v }

// value is a metric's value, of all its series together. It is -1 without the metric.
func value(t *testing.T, from prometheus.Gatherer, name string) float64 {
	t.Helper()
	all, err := from.Gather()
	require.NoError(t, err)
	sum := -1.0
	for _, f := range all {
		if f.GetName() == name {
			sum = 0
			for _, m := range f.GetMetric() {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

func pods(t *testing.T, kube kubernetes.Interface) []corev1.Pod {
	t.Helper()
	l, err := kube.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return l.Items
}

func TestTheSuccessorOfALeaderThatIsKilledGoesOn(t *testing.T) {
	w := world{fake.New(vmitest.New(vmitest.WithName("hello"))), kubefake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})}
	api, err := client.New(w.api.Config())
	require.NoError(t, err)
	leads := func(name string) func() bool {
		return func() bool {
			l, err := w.kube.CoordinationV1().Leases("kubevirt").Get(t.Context(), "virt-controller", metav1.GetOptions{})
			return err == nil && l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity == name
		}
	}

	first := w.start(t, "first")
	require.Eventually(t, leads("first"), time.Minute, 10*time.Millisecond)
	second := w.start(t, "second")
	require.Eventually(t, func() bool { return len(pods(t, w.kube)) == 1 }, time.Minute, 10*time.Millisecond)
	require.Eventually(t, func() bool { return value(t, first.metrics, "example_vmis") == 1 }, time.Minute, 10*time.Millisecond)
	require.Positive(t, value(t, first.metrics, "kubevirt_workqueue_adds_total"), "Podvisor's metrics are in the registry of the program")
	require.Negative(t, value(t, second.metrics, "kubevirt_workqueue_adds_total"), "the second does not lead")
	require.Eventually(t, func() bool { return value(t, second.metrics, "podvisor_unreadable_objects") == 0 }, time.Minute, 10*time.Millisecond, "it follows the configuration all the same")

	first.kill()
	require.NoError(t, <-first.ended)
	require.True(t, leads("first")(), "it did not give the lease back")
	require.Negative(t, value(t, first.metrics, "kubevirt_workqueue_adds_total"))

	// While no process leads, the scheduler and the kubelet go on.
	p := pods(t, w.kube)[0].DeepCopy()
	p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: vmi.ComputeContainer, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	_, err = w.kube.CoreV1().Pods("default").Update(t.Context(), p, metav1.UpdateOptions{})
	require.NoError(t, err)

	// Its time is over.
	require.NoError(t, w.kube.CoordinationV1().Leases("kubevirt").Delete(t.Context(), "virt-controller", metav1.DeleteOptions{}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	v, err := client.WaitForPhase(ctx, api.VirtualMachineInstances("default"), "hello", vmi.PhaseScheduled)
	require.NoError(t, err)
	require.Equal(t, "n1", v.Status.NodeName)
	require.True(t, leads("second")())
	require.Len(t, pods(t, w.kube), 1, "the successor found the pod of the one before")
	require.Positive(t, value(t, second.metrics, "kubevirt_workqueue_adds_total"))
	second.kill()
	require.NoError(t, <-second.ended)
}
