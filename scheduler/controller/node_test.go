package controller

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/podvisor/podvisor/internal/expiring"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	vmifake "github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// handlerPod is the pod of virt-handler on n1.
func handlerPod(ready corev1.ConditionStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "vms", Name: "virt-handler-x", Labels: map[string]string{vmi.AppLabel: handlerApp}},
		Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: handlerApp}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
}

// runs is a VMI that runs on n1, and its pod.
func runs(t *testing.T, name string) (*vmi.VirtualMachineInstance, *corev1.Pod) {
	t.Helper()
	v := vmitest.New(vmitest.WithName(name))
	v.UID, v.Finalizers = types.UID("uid-"+name), []string{vmi.Finalizer}
	p, err := pod.Render(v, pod.Config{Launcher: rendering})
	require.NoError(t, err)
	p.UID, p.Spec.NodeName = types.UID("pod-"+name), "n1"
	p.Status = corev1.PodStatus{
		Phase:             corev1.PodRunning,
		Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: vmi.ComputeContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
	}
	v.Status.SetPhase(vmi.PhaseRunning, metav1.Now())
	v.Status.NodeName, v.Status.ActivePods = "n1", map[types.UID]string{p.UID: "n1"}
	v.Labels = map[string]string{vmi.NodeNameLabel: "n1"}
	v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionTrue}, metav1.Now())
	return v, p
}

// cluster is a Controller that runs over fake API servers.
type cluster struct {
	t    *testing.T
	vmis client.VirtualMachineInstances
	kube *fake.Clientset
	down *expiring.Map[string, time.Time]
	// patches is the number of writes of VMIs.
	patches atomic.Int32
	mu      sync.Mutex
	now     time.Time
}

func newCluster(t *testing.T, vmis int) *cluster {
	t.Helper()
	c := &cluster{t: t, now: time.Now()}
	objects, kube := []vmi.Object{}, []runtime.Object{node(corev1.ConditionTrue), handlerPod(corev1.ConditionTrue)}
	for i := range vmis {
		v, p := runs(t, fmt.Sprintf("vmi%d", i))
		objects, kube = append(objects, v), append(kube, p)
	}
	cfg := vmifake.New(objects...).Config()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return patchCounter{next, &c.patches} })
	api, err := client.New(cfg)
	require.NoError(t, err)
	c.vmis, c.kube = api.VirtualMachineInstances("default"), fake.NewClientset(kube...)
	k, err := New(Config{Client: api, Kube: c.kube, Launcher: rendering, Home: "vms", Now: func() time.Time {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.now
	}})
	require.NoError(t, err)
	c.down = &k.downtimes
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	return c
}

type patchCounter struct {
	next http.RoundTripper
	n    *atomic.Int32
}

func (p patchCounter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPatch {
		p.n.Add(1)
	}
	return p.next.RoundTrip(r)
}

func (c *cluster) wait(name string, ok func(*vmi.VirtualMachineInstance) bool) {
	c.t.Helper()
	var last *vmi.VirtualMachineInstance
	require.Eventually(c.t, func() bool {
		v, err := c.vmis.Get(c.t.Context(), name, metav1.GetOptions{})
		last = v
		return err == nil && ok(v)
	}, time.Minute, 5*time.Millisecond, "%v", last)
}

func (c *cluster) waitReason(name, reason string) {
	c.t.Helper()
	c.wait(name, func(v *vmi.VirtualMachineInstance) bool {
		r := v.Status.Condition(vmi.ConditionReady)
		return reason == "" && r.Status == corev1.ConditionTrue || r.Status == corev1.ConditionFalse && r.Reason == reason
	})
}

// watched waits until the Controller watches the resource in the namespace. Client-go's fake
// gives a watch what was added or changed since the list, but not what was deleted.
func (c *cluster) watched(resource, namespace string) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		return slices.ContainsFunc(c.kube.Actions(), func(a ktesting.Action) bool {
			return a.Matches("watch", resource) && a.GetNamespace() == namespace
		})
	}, time.Minute, time.Millisecond)
}

func (c *cluster) update(n *corev1.Node) {
	c.t.Helper()
	_, err := c.kube.CoreV1().Nodes().Update(c.t.Context(), n, metav1.UpdateOptions{})
	require.NoError(c.t, err)
}

func TestANodeThatDoesNotRespondIsOneWriteAndOneEventForEachVMI(t *testing.T) {
	t.Parallel()
	const n = 20
	c := newCluster(t, n)
	c.update(node(corev1.ConditionUnknown))
	for i := range n {
		c.waitReason(fmt.Sprintf("vmi%d", i), "NodeNotReady")
	}
	require.Equal(t, int32(n), c.patches.Load())
	down := handlerPod(corev1.ConditionFalse)
	_, err := c.kube.CoreV1().Pods("vms").Update(t.Context(), down, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return c.down.Len() == 1 }, time.Minute, time.Millisecond)
	c.mu.Lock()
	c.now = c.now.Add(time.Minute)
	c.mu.Unlock()
	c.update(node(corev1.ConditionTrue))
	for i := range n {
		c.waitReason(fmt.Sprintf("vmi%d", i), "HandlerNotReady")
	}
	_, err = c.kube.CoreV1().Pods("vms").Update(t.Context(), handlerPod(corev1.ConditionTrue), metav1.UpdateOptions{})
	require.NoError(t, err)
	for i := range n {
		c.waitReason(fmt.Sprintf("vmi%d", i), "")
	}
	require.Equal(t, int32(3*n), c.patches.Load())
	events, err := c.kube.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	count := map[string]int{}
	for _, e := range events.Items {
		count[e.Reason]++
	}
	require.Equal(t, map[string]int{"NodeNotReady": n, "HandlerNotReady": n}, count)
}

// A handler that ends does its work until the migrations of its node are over.
func TestAHandlerThatEndsIsDownWhenItIsNotReady(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	pods := c.kube.CoreV1().Pods("vms")
	c.update(node(corev1.ConditionUnknown))
	c.waitReason("vmi0", "NodeNotReady") // the caches are filled
	ending := handlerPod(corev1.ConditionTrue)
	ending.DeletionTimestamp, ending.Finalizers = &metav1.Time{Time: c.now}, []string{"example/kept"}
	_, err := pods.Update(t.Context(), ending, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.mu.Lock()
	c.now = c.now.Add(time.Minute)
	c.mu.Unlock()
	c.update(node(corev1.ConditionTrue))
	c.waitReason("vmi0", "")
	require.Zero(t, c.down.Len())
	ended := handlerPod(corev1.ConditionFalse)
	ended.DeletionTimestamp, ended.Finalizers = ending.DeletionTimestamp, ending.Finalizers
	_, err = pods.Update(t.Context(), ended, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return c.down.Len() == 1 }, time.Minute, time.Millisecond)
	_, err = pods.Create(t.Context(), renamed(handlerPod(corev1.ConditionTrue)), metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return c.down.Len() == 0 }, time.Minute, time.Millisecond)
}

func renamed(p *corev1.Pod) *corev1.Pod {
	p.Name, p.UID = "a-"+p.Name, "a-"+p.UID
	return p
}

func TestAPodThatIsRemovedByForceEndsNoVMIBeforeItsNodeIsFenced(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	c.update(node(corev1.ConditionUnknown))
	c.waitReason("vmi0", "NodeNotReady")
	removed := func(v *vmi.VirtualMachineInstance) bool {
		return v.Status.Phase == vmi.PhaseRunning && v.Status.PodRemoved() && v.Status.Reason == "PodRemoved"
	}
	c.watched("pods", "")
	for _, name := range []string{"vmi0", "vmi1"} {
		v, p := runs(t, name)
		require.NoError(t, c.kube.CoreV1().Pods(v.Namespace).Delete(t.Context(), p.Name, metav1.DeleteOptions{}))
		c.wait(name, removed)
	}
	require.NoError(t, c.vmis.Delete(t.Context(), "vmi1", metav1.DeleteOptions{}))
	c.update(node(corev1.ConditionTrue))
	c.wait("vmi0", func(v *vmi.VirtualMachineInstance) bool {
		return removed(v) && strings.HasSuffix(v.Status.Condition(vmi.ConditionReady).Message, "virt-handler is to report that nothing of it is left on node n1")
	})
	c.update(node(corev1.ConditionUnknown))
	c.wait("vmi1", func(v *vmi.VirtualMachineInstance) bool { return v.DeletionTimestamp != nil && removed(v) })
	c.watched("nodes", "")
	require.NoError(t, c.kube.CoreV1().Nodes().Delete(t.Context(), "n1", metav1.DeleteOptions{}))
	for _, name := range []string{"vmi0", "vmi2"} {
		c.wait(name, func(v *vmi.VirtualMachineInstance) bool {
			return v.Status.Phase == vmi.PhaseFailed && v.Status.Reason == "NodeUnresponsive"
		})
	}
	require.Eventually(t, func() bool {
		_, err := c.vmis.Get(t.Context(), "vmi1", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, time.Minute, 5*time.Millisecond, "the deleted one goes")
}

func TestANodeThatIsGoneIsForgotten(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	c.update(node(corev1.ConditionUnknown))
	c.waitReason("vmi0", "NodeNotReady") // the caches are filled
	downtimes := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool { return c.down.Len() == n }, time.Minute, time.Millisecond)
	}
	c.watched("pods", "vms")
	require.NoError(t, c.kube.CoreV1().Pods("vms").Delete(t.Context(), handlerPod("").Name, metav1.DeleteOptions{}))
	downtimes(1)
	c.watched("nodes", "")
	require.NoError(t, c.kube.CoreV1().Nodes().Delete(t.Context(), "n1", metav1.DeleteOptions{}))
	downtimes(0)
}

func TestANodeThatTheCacheDoesNotHaveIsReadFromTheAPIServer(t *testing.T) {
	t.Parallel()
	v, p := runs(t, "testvmi")
	r := newRig(t, v, p)
	require.NoError(t, r.caches.pods.GetIndexer().Add(p))
	_, err := r.reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Empty(t, r.server.patches, "the cache is empty, but the node exists and is ready")
	fail := true
	r.kube.PrependReactor("get", "nodes", func(ktesting.Action) (bool, runtime.Object, error) {
		return fail, nil, apierrors.NewInternalError(context.DeadlineExceeded)
	})
	_, err = r.reconcile(t.Context(), key)
	require.ErrorContains(t, err, "read node n1")
	require.Empty(t, r.server.patches)
	fail = false
	require.NoError(t, r.kube.CoreV1().Nodes().Delete(t.Context(), "n1", metav1.DeleteOptions{}))
	_, err = r.reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, "NodeUnresponsive", r.server.vmi.Status.Reason)
}

func TestClaimsAreObserved(t *testing.T) {
	t.Parallel()
	v := stored("")
	v.Spec.Volumes = []vmi.Volume{
		{Name: "root", VolumeSource: vmi.VolumeSource{DataVolume: &vmi.DataVolumeVolume{Name: "there"}}},
		{Name: "data", VolumeSource: vmi.VolumeSource{DataVolume: &vmi.DataVolumeVolume{Name: "missing"}}},
	}
	r := newRig(t, v, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: "there"}})
	claims, err := r.claimsOf(t.Context(), v, instance.Pods{})
	require.NoError(t, err)
	require.Equal(t, "there", claims["there"].Name, "which the cache does not have")
	require.Contains(t, claims, "missing")
	require.Nil(t, claims["missing"])
	require.Equal(t, []string{key}, r.caches.instancesWith(claims["there"]))
}
