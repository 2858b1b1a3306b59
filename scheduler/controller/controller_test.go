package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	ktesting "k8s.io/client-go/testing"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// server is an API server that holds one VMI.
type server struct {
	mu      sync.Mutex
	vmi     *vmi.VirtualMachineInstance
	patches []string
	gone    bool // the VMI does not exist any more
}

// ServeHTTP answers a merge patch, and refuses one for another state.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	var p struct{ Metadata metav1.ObjectMeta }
	_ = json.Unmarshal(body, &p)
	w.Header().Set("Content-Type", "application/json")
	if s.gone {
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(apierrors.NewNotFound(vmi.VirtualMachineInstances.Resource().GroupResource(), s.vmi.Name).Status())
		return
	}
	if r.Method != http.MethodPatch || p.Metadata.ResourceVersion != s.vmi.ResourceVersion {
		e := apierrors.NewConflict(vmi.VirtualMachineInstances.Resource().GroupResource(), s.vmi.Name, errors.New("it changed"))
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(e.Status())
		return
	}
	s.patches = append(s.patches, string(body))
	doc, _ := json.Marshal(s.vmi)
	doc, _ = jsonpatch.MergePatch(doc, body)
	s.vmi = &vmi.VirtualMachineInstance{}
	_ = json.Unmarshal(doc, s.vmi)
	n, _ := strconv.Atoi(s.vmi.ResourceVersion)
	s.vmi.ResourceVersion = strconv.Itoa(n + 1)
	_ = json.NewEncoder(w).Encode(s.vmi)
}

// rig is a controller whose caches hold what the test puts in.
type rig struct {
	*Controller
	server *server
	kube   *fake.Clientset
}

const key = "default/testvmi"

func newRig(t *testing.T, v *vmi.VirtualMachineInstance, objects ...runtime.Object) rig {
	t.Helper()
	v.ResourceVersion = "1"
	s := &server{vmi: v}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	vmis, err := client.New(&rest.Config{Host: h.URL})
	require.NoError(t, err)
	kube := fake.NewClientset(append(objects, node(corev1.ConditionTrue))...)
	c, err := New(Config{Client: vmis, Kube: kube, Launcher: rendering})
	require.NoError(t, err)
	require.NoError(t, c.caches.instances.GetIndexer().Add(v.DeepCopy()))
	return rig{c, s, kube}
}

func (r rig) reconcile(ctx context.Context, key string) (time.Duration, error) {
	return r.instances.reconcile(ctx, key)
}

// node is the node n1.
func node(ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour))},
	}}}
}

var rendering = pod.Launcher{Image: "example/virt-launcher:v1"}

func stored(p vmi.Phase) *vmi.VirtualMachineInstance {
	v := vmitest.New()
	v.Finalizers = []string{vmi.Finalizer}
	v.Status.Phase = p
	return v
}

func launcher(t *testing.T) *corev1.Pod {
	t.Helper()
	p, err := pod.Render(stored(""), pod.Config{Launcher: rendering})
	require.NoError(t, err)
	p.UID = "pod-uid"
	return p
}

func (r rig) pods(t *testing.T) []corev1.Pod {
	t.Helper()
	l, err := r.kube.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return l.Items
}

func TestAStaleCacheIsNotWrittenAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, stored(vmi.PhasePending))
	for range 3 {
		_, err := r.reconcile(t.Context(), key)
		require.NoError(t, err)
	}
	require.Len(t, r.pods(t), 1)
	require.Len(t, r.server.patches, 1, "the cache still has the VMI without a status")
	require.Equal(t, vmi.PhaseScheduling, r.server.vmi.Status.Phase)

	require.NoError(t, r.caches.instances.GetIndexer().Update(r.server.vmi.DeepCopy()))
	_, err := r.reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Zero(t, r.instances.writer.Len(), "nothing is remembered when the cache has caught up")
}

func TestAFinalizerAndTheStatusAreWrittenOnTopOfEachOther(t *testing.T) {
	t.Parallel()
	v := stored(vmi.PhasePending)
	v.Finalizers = nil
	r := newRig(t, v)
	_, err := r.reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, []string{vmi.Finalizer}, r.server.vmi.Finalizers)
	require.Equal(t, vmi.PhaseScheduling, r.server.vmi.Status.Phase)
}

func TestAWriteForAnOldStateIsAConflict(t *testing.T) {
	t.Parallel()
	r := newRig(t, stored(vmi.PhasePending))
	r.server.vmi.ResourceVersion = "7"
	_, err := r.reconcile(t.Context(), key)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.Empty(t, r.server.patches)
}

func TestARefusedPodIsWrittenAndTriedAgainWhenItHasItsTurn(t *testing.T) {
	t.Parallel()
	r := newRig(t, stored(""))
	r.instances.turns.after = func(time.Duration, func()) {} // a turn is due when the test says so
	refuse, tries := true, 0
	r.kube.PrependReactor("create", "pods", func(ktesting.Action) (bool, runtime.Object, error) {
		tries++
		return refuse, nil, apierrors.NewForbidden(corev1.Resource("pods"), "x", fmt.Errorf("exceeded quota: used %d", tries))
	})
	for range 3 {
		for range 3 {
			_, err := r.reconcile(t.Context(), key)
			require.NoError(t, err)
		}
		r.instances.turns.due("default")
	}
	require.Equal(t, 3, tries, "one for each turn")
	require.Len(t, r.server.patches, 1, "another message of the same reason is not written at once")
	c := r.server.vmi.Status.Condition(vmi.ConditionSynchronized)
	require.Equal(t, "FailedCreate", c.Reason)
	require.Contains(t, c.Message, "exceeded quota: used 1")

	refuse = false
	_, err := r.reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Nil(t, r.server.vmi.Status.Condition(vmi.ConditionSynchronized))
}

func TestAnAPIServerThatFailsIsNoRefusal(t *testing.T) {
	t.Parallel()
	r := newRig(t, stored(""))
	r.kube.PrependReactor("create", "pods", func(ktesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewServerTimeout(corev1.Resource("pods"), "create", 1)
	})
	_, err := r.reconcile(t.Context(), key)
	require.ErrorContains(t, err, "create pod default/")
	require.Empty(t, r.server.patches)
}

func TestAVMISaysThatItsPodWaitsForTheWebhook(t *testing.T) {
	t.Parallel()
	r := newRig(t, stored(""))
	r.kube.PrependReactor("create", "pods", func(ktesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewInternalError(errors.New("failed calling webhook"))
	})
	_, err := r.reconcile(t.Context(), key)
	require.NoError(t, err)
	c := r.server.vmi.Status.Condition(vmi.ConditionSynchronized)
	require.Equal(t, "FailedCreate", c.Reason)
	require.Contains(t, c.Message, "failed calling webhook")
}

func TestAPodWithTheNameIsTheVMIsOrAReason(t *testing.T) {
	t.Parallel()
	r := newRig(t, stored(vmi.PhasePending), launcher(t))
	_, err := r.reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, vmi.PhaseScheduling, r.server.vmi.Status.Phase)

	for name, change := range map[string]func(*corev1.Pod){
		"without the owner":  func(p *corev1.Pod) { p.OwnerReferences = nil },
		"without the labels": func(p *corev1.Pod) { p.Labels = nil },
	} {
		strange := launcher(t)
		change(strange)
		r = newRig(t, stored(""), strange)
		_, err = r.reconcile(t.Context(), key)
		require.ErrorContains(t, err, "PodNameTaken", name)
		require.Equal(t, "PodNameTaken", r.server.vmi.Status.Condition(vmi.ConditionSynchronized).Reason, name)
	}
}

func TestTheAPIServerDecidesWhetherAPodIsGone(t *testing.T) {
	t.Parallel()
	r := newRig(t, stored(vmi.PhaseScheduling), launcher(t))
	_, err := r.reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, vmi.PhaseScheduling, r.server.vmi.Status.Phase, "the cache of pods is empty, but the pod exists")

	r = newRig(t, stored(vmi.PhaseScheduling))
	_, err = r.reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, vmi.PhaseFailed, r.server.vmi.Status.Phase)
}

func TestTheAPIServerDecidesWhetherAPodWasReplaced(t *testing.T) {
	t.Parallel()
	v := stored(vmi.PhaseRunning)
	v.Status.NodeName = "n1"
	v.Status.ActivePods = map[types.UID]string{"pod-uid": "n1"}
	r := newRig(t, v, launcher(t))
	refused := launcher(t) // by its node, before the VMI got the one that runs
	refused.UID, refused.Status.Phase = "refused", corev1.PodFailed
	require.NoError(t, r.caches.pods.GetIndexer().Add(refused))
	_, err := r.reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, vmi.PhaseRunning, r.server.vmi.Status.Phase, "the cache of pods is behind")

	require.NoError(t, r.kube.CoreV1().Pods("default").Delete(t.Context(), refused.Name, metav1.DeleteOptions{}))
	_, err = r.reconcile(t.Context(), key)
	require.NoError(t, err)
	require.True(t, r.server.vmi.Status.PodRemoved(), "its node is to say whether its guest runs")
}

// The kubelet deletes a pod as soon as it has reported its end.
func TestAPodThatEndedAndIsGoneIsRemembered(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ended bool
		uid   types.UID
		want  vmi.Phase
	}{
		"it had ended":                {true, "pod-uid", vmi.PhaseSucceeded},
		"it had not":                  {false, "pod-uid", vmi.PhaseRunning},
		"another one of its name had": {true, "other", vmi.PhaseRunning},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := stored(vmi.PhaseRunning)
			v.Status.NodeName = "n1"
			v.Status.ActivePods = map[types.UID]string{"pod-uid": "n1"}
			r := newRig(t, v)
			p := launcher(t)
			p.UID, p.Spec.NodeName = tt.uid, "n1"
			p.Status.Phase = corev1.PodRunning
			if tt.ended {
				p.Status.Phase = corev1.PodSucceeded
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: vmi.ComputeContainer, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
			}
			r.noteLast(p)
			_, err := r.reconcile(t.Context(), key)
			require.NoError(t, err)
			require.Equal(t, tt.want, r.server.vmi.Status.Phase)
			require.Equal(t, tt.want == vmi.PhaseRunning, r.server.vmi.Status.PodRemoved())
		})
	}
}

// The guest of a pod that was removed by force may end before virt-controller has written that
// it was removed. Then virt-handler cannot know that it was no eviction.
func TestAnEndWithAPodThatWasRemovedByForceIsNoEviction(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		note func(rig, *corev1.Pod)
		want string
	}{
		"the removal is seen first": {func(r rig, p *corev1.Pod) {
			v := stored(vmi.PhaseRunning)
			v.Status.NodeName, v.Status.ActivePods = "n1", map[types.UID]string{"pod-uid": "n1"}
			ended := r.caches.instances.Lister().Key(key)
			require.NoError(t, r.caches.instances.GetIndexer().Update(v))
			r.noteLast(p)
			require.NoError(t, r.caches.instances.GetIndexer().Update(ended))
		}, "PodDeleted"},
		"the end is seen first":    {func(r rig, p *corev1.Pod) { r.noteLast(p) }, "PodDeleted"},
		"the removal is not seen":  {func(rig, *corev1.Pod) {}, "Evicted"},
		"it is seen of another":    {func(r rig, p *corev1.Pod) { p.UID = "other"; r.noteLast(p) }, "Evicted"},
		"it is there all the same": {func(r rig, p *corev1.Pod) { require.NoError(t, r.caches.pods.GetIndexer().Add(p)); r.noteLast(p) }, "Evicted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := stored(vmi.PhaseFailed)
			v.Status.Reason, v.Status.NodeName, v.Status.ActivePods = "Evicted", "n1", map[types.UID]string{"pod-uid": "n1"}
			v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Reason: "GuestNotRunning", Message: vmi.UnknownDisruption + "; it did not power off"}, metav1.Now())
			r := newRig(t, v)
			p := launcher(t)
			p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning
			tt.note(r, p)
			_, err := r.reconcile(t.Context(), key)
			require.NoError(t, err)
			require.Equal(t, tt.want, r.server.vmi.Status.Reason)
		})
	}
}

func TestADeletedVMILosesItsPodAndThenItsFinalizer(t *testing.T) {
	t.Parallel()
	v := stored(vmi.PhaseScheduling)
	v.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	r := newRig(t, v, launcher(t))
	_, err := r.reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Empty(t, r.pods(t))
	require.Empty(t, r.server.patches)
	_, err = r.reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Empty(t, r.server.vmi.Finalizers)
}

func TestAVMIThatVanishesIsAnErrorUnlessItIsToVanish(t *testing.T) {
	t.Parallel()
	r := newRig(t, stored(vmi.PhasePending))
	r.server.gone = true
	_, err := r.reconcile(t.Context(), key)
	require.True(t, apierrors.IsNotFound(err), "%v", err)

	v := stored(vmi.PhasePending)
	v.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	r = newRig(t, v)
	r.server.gone = true
	_, err = r.reconcile(t.Context(), key)
	require.NoError(t, err)
}

func TestAVMIThatIsGoneIsNoError(t *testing.T) {
	t.Parallel()
	r := newRig(t, stored(""))
	after, err := r.reconcile(t.Context(), "default/other")
	require.NoError(t, err)
	require.Zero(t, after)
}

func TestNewNeedsWhatIsRequired(t *testing.T) {
	t.Parallel()
	_, err := New(Config{})
	require.EqualError(t, err, "controller.Config: set Client, Kube, Launcher.Image")
}

func TestWhatIsCachedOfAPod(t *testing.T) {
	t.Parallel()
	p := launcher(t)
	r := newRig(t, stored(vmi.PhaseRunning), p)
	none, v := r.Cached(p.Namespace, p.Name)
	require.Nil(t, none, "it was not seen yet")
	require.Nil(t, v)
	require.NoError(t, r.caches.pods.GetIndexer().Add(p))
	got, v := r.Cached(p.Namespace, p.Name)
	require.Equal(t, p, got)
	require.Equal(t, "testvmi", v.Name)
	require.NoError(t, r.caches.instances.GetIndexer().Delete(v))
	got, v = r.Cached(p.Namespace, p.Name)
	require.Equal(t, p, got)
	require.Nil(t, v)
	stray := p.DeepCopy()
	stray.Name, stray.OwnerReferences = "stray", nil
	require.NoError(t, r.caches.pods.GetIndexer().Add(stray))
	got, v = r.Cached(p.Namespace, "stray")
	require.Equal(t, stray, got)
	require.Nil(t, v)
}

// The cache has the pod some milliseconds after it was created, and the VMI is often decided
// on in between.
func TestAPodThatTheCacheDoesNotHaveYetIsCreatedAndReportedOnce(t *testing.T) {
	t.Parallel()
	v := stored("")
	v.CreationTimestamp = metav1.Now()
	r := newRig(t, v)
	_, err := r.reconcile(t.Context(), key)
	require.NoError(t, err)
	_, err = r.reconcile(t.Context(), key)
	require.True(t, apierrors.IsConflict(err), "it is decided on again soon: %v", err)
	require.Len(t, r.pods(t), 1)
	events, err := r.kube.CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, events.Items, 1)
}
