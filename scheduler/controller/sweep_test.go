package controller

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
)

func orphaned(p *corev1.Pod) { p.OwnerReferences = nil }

// sweep is a controller whose cache has the pod, and an API server with the VMIs.
func newSweep(t *testing.T, p *corev1.Pod, vmis ...*vmi.VirtualMachineInstance) (*Controller, *kubefake.Clientset) {
	t.Helper()
	var stored []vmi.Object
	for _, v := range vmis {
		stored = append(stored, v)
	}
	api, err := client.New(fake.New(stored...).Config())
	require.NoError(t, err)
	kube := kubefake.NewClientset(p)
	c, err := New(Config{Client: api, Kube: kube, Launcher: rendering})
	require.NoError(t, err)
	require.NoError(t, c.caches.pods.GetIndexer().Add(p))
	return c, kube
}

func TestThePodOfAVMIThatDoesNotExistIsDeleted(t *testing.T) {
	t.Parallel()
	another := stored(vmi.PhaseRunning)
	another.UID = "another"
	for name, tt := range map[string]struct {
		change  func(*corev1.Pod)
		vmis    []*vmi.VirtualMachineInstance
		deleted bool
	}{
		"its VMI is gone":                         {orphaned, nil, true},
		"a VMI of the same name took its place":   {orphaned, []*vmi.VirtualMachineInstance{another}, true},
		"its VMI exists and is not in the cache":  {orphaned, []*vmi.VirtualMachineInstance{stored(vmi.PhaseRunning)}, false},
		"Kubernetes deletes it with its VMI":      {func(*corev1.Pod) {}, nil, false},
		"it is no launcher":                       {func(p *corev1.Pod) { orphaned(p); p.Labels = nil }, nil, false},
		"it names no VMI":                         {func(p *corev1.Pod) { orphaned(p); p.Annotations = nil }, nil, false},
		"it names no UID, like a pod of a tenant": {func(p *corev1.Pod) { orphaned(p); delete(p.Labels, vmi.CreatedByLabel) }, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := launcher(t)
			tt.change(p)
			c, kube := newSweep(t, p, tt.vmis...)
			_, err := c.sweeper.reconcile(t.Context(), p.Namespace+"/"+p.Name)
			require.NoError(t, err)
			l, err := kube.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			require.Len(t, l.Items, map[bool]int{true: 0, false: 1}[tt.deleted])
		})
	}
}

func TestAPodThatKubernetesDoesNotDeleteIsDeletedLater(t *testing.T) {
	t.Parallel()
	p := launcher(t)
	c, kube := newSweep(t, p)
	now := time.Now()
	c.sweeper.cfg.Now = func() time.Time { return now }
	after, err := c.sweeper.reconcile(t.Context(), p.Namespace+"/"+p.Name)
	require.NoError(t, err)
	require.NotZero(t, after)
	now = now.Add(after)
	_, err = c.sweeper.reconcile(t.Context(), p.Namespace+"/"+p.Name)
	require.NoError(t, err)
	l, err := kube.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, l.Items)
}

func TestAPodThatGoesWithItsVMICostsNoRequest(t *testing.T) {
	t.Parallel()
	p := launcher(t)
	requests := 0
	cfg := fake.New().Config()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return counted(func(r *http.Request) (*http.Response, error) { requests++; return next.RoundTrip(r) })
	})
	api, err := client.New(cfg)
	require.NoError(t, err)
	kube := kubefake.NewClientset(p)
	now := time.Now()
	c, err := New(Config{Client: api, Kube: kube, Launcher: rendering, Now: func() time.Time { return now }})
	require.NoError(t, err)
	require.NoError(t, c.caches.pods.GetIndexer().Add(p))

	after, err := c.sweeper.reconcile(t.Context(), reconcile.Key(p))
	require.NoError(t, err)
	require.NotZero(t, after)
	require.NoError(t, c.caches.pods.GetIndexer().Delete(p)) // by Kubernetes
	now = now.Add(after)
	_, err = c.sweeper.reconcile(t.Context(), reconcile.Key(p))
	require.NoError(t, err)
	require.Zero(t, requests+len(kube.Actions()))
}

// counted is a transport that is a function.
type counted func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f counted) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAKindThatIsNotServedSaysNothingAboutItsObjects(t *testing.T) {
	t.Parallel()
	absent := apierrors.NewNotFound(vmi.VirtualMachineInstances.Resource().GroupResource(), "vm")
	unserved := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", vmi.VirtualMachineInstances.Resource().GroupResource(), "vm", "404 page not found", 0, true)
	require.True(t, isMissing(absent))
	require.True(t, apierrors.IsNotFound(unserved))
	require.False(t, isMissing(unserved))
	require.False(t, isMissing(apierrors.NewInternalError(absent)))
	require.False(t, isMissing(nil))
}

func TestAPodThatTheCacheHasNotSeenKeepsANewVMIOfItsName(t *testing.T) {
	t.Parallel()
	first := launcher(t) // of the VMI that was removed with its finalizer
	r := newRig(t, stored(""), first)
	second := stored("")
	second.UID, second.ResourceVersion = types.UID("second"), "1"
	second.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
	require.NoError(t, r.caches.instances.GetIndexer().Update(second))
	r.server.vmi = second.DeepCopy()
	r.made.Put(key, first.Name, time.Now(), 0)

	_, err := r.reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Len(t, r.pods(t), 1, "no second pod is made")
	require.Equal(t, "PreviousPodExists", r.server.vmi.Status.Condition(vmi.ConditionSynchronized).Reason)

	require.NoError(t, r.kube.CoreV1().Pods("default").Delete(t.Context(), first.Name, metav1.DeleteOptions{}))
	_, err = r.reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Len(t, r.pods(t), 1)
	require.NotEqual(t, first.Name, r.pods(t)[0].Name)
}

func TestAPodWithoutItsVMIIsDeleted(t *testing.T) {
	t.Parallel()
	now := time.Now()
	leaving := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now} }
	ended := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	remove := []scheduler.Action{scheduler.DeletePod{Name: launcher(t).Name, UID: "pod-uid"}}
	for name, tt := range map[string]struct {
		change []func(*corev1.Pod)
		gone   time.Time
		want   scheduler.Plan
	}{
		"an orphaned one at once":                     {[]func(*corev1.Pod){orphaned}, now, scheduler.Plan{Actions: remove}},
		"one that Kubernetes deletes is left to it":   {nil, now, scheduler.Plan{Recheck: 15 * time.Second}},
		"one that Kubernetes should have deleted":     {nil, now.Add(-time.Minute), scheduler.Plan{Actions: remove}},
		"one that is being deleted is left to itself": {[]func(*corev1.Pod){orphaned, leaving}, now, scheduler.Plan{}},
		"an orphaned one that has ended":              {[]func(*corev1.Pod){orphaned, ended}, now, scheduler.Plan{Actions: remove}},
		"one that has ended is left to it for longer": {[]func(*corev1.Pod){ended}, now.Add(-time.Minute), scheduler.Plan{Recheck: 4 * time.Minute}},
		"one that has ended and is forgotten":         {[]func(*corev1.Pod){ended}, now.Add(-time.Hour), scheduler.Plan{Actions: remove}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := launcher(t)
			for _, c := range tt.change {
				c(p)
			}
			require.Equal(t, tt.want, sweepPod(p, tt.gone, now))
		})
	}
}
