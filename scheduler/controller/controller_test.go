package controller

import (
	"encoding/json"
	"errors"
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

// server is an API server that holds one machine.
type server struct {
	mu      sync.Mutex
	machine *vmi.VirtualMachineInstance
	patches []string
}

// ServeHTTP answers a merge patch, and refuses one for another state.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	var p struct{ Metadata metav1.ObjectMeta }
	_ = json.Unmarshal(body, &p)
	w.Header().Set("Content-Type", "application/json")
	if r.Method != http.MethodPatch || p.Metadata.ResourceVersion != s.machine.ResourceVersion {
		e := apierrors.NewConflict(vmi.Resource.GroupResource(), s.machine.Name, errors.New("it changed"))
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(e.Status())
		return
	}
	s.patches = append(s.patches, string(body))
	doc, _ := json.Marshal(s.machine)
	doc, _ = jsonpatch.MergePatch(doc, body)
	s.machine = &vmi.VirtualMachineInstance{}
	_ = json.Unmarshal(doc, s.machine)
	n, _ := strconv.Atoi(s.machine.ResourceVersion)
	s.machine.ResourceVersion = strconv.Itoa(n + 1)
	_ = json.NewEncoder(w).Encode(s.machine)
}

// rig is a controller whose caches hold what the test puts in.
type rig struct {
	*Controller
	server *server
	kube   *fake.Clientset
}

const key = "default/testvmi"

func newRig(t *testing.T, v *vmi.VirtualMachineInstance, pods ...runtime.Object) rig {
	t.Helper()
	v.ResourceVersion = "1"
	s := &server{machine: v}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	machines, err := client.New(&rest.Config{Host: h.URL})
	require.NoError(t, err)
	kube := fake.NewClientset(pods...)
	c, err := New(Config{Client: machines, Kube: kube, Pods: rendering})
	require.NoError(t, err)
	require.NoError(t, c.machines.GetIndexer().Add(v.DeepCopy()))
	return rig{c, s, kube}
}

var rendering = pod.Config{Image: "example/virt-launcher:v1"}

func machine(p vmi.Phase) *vmi.VirtualMachineInstance {
	v := vmitest.New()
	v.Finalizers = []string{vmi.Finalizer}
	v.Status.Phase = p
	return v
}

func launcher(t *testing.T) *corev1.Pod {
	t.Helper()
	p, err := pod.Render(machine(""), rendering)
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
	r := newRig(t, machine(""))
	for range 3 {
		_, err := r.reconcile(t.Context(), key)
		require.NoError(t, err)
	}
	require.Len(t, r.pods(t), 1)
	require.Len(t, r.server.patches, 1, "the cache still has the machine without a status")
	require.Equal(t, vmi.Scheduling, r.server.machine.Status.Phase)

	require.NoError(t, r.machines.GetIndexer().Update(r.server.machine.DeepCopy()))
	_, err := r.reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Empty(t, r.own.objs, "nothing is remembered when the cache has caught up")
}

func TestAFinalizerAndTheStatusAreWrittenOnTopOfEachOther(t *testing.T) {
	t.Parallel()
	v := machine("")
	v.Finalizers = nil
	r := newRig(t, v)
	_, err := r.reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, []string{vmi.Finalizer}, r.server.machine.Finalizers)
	require.Equal(t, vmi.Scheduling, r.server.machine.Status.Phase)
}

func TestAWriteForAnOldStateIsAConflict(t *testing.T) {
	t.Parallel()
	r := newRig(t, machine(""))
	r.server.machine.ResourceVersion = "7"
	_, err := r.reconcile(t.Context(), key)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.Empty(t, r.server.patches)
}

func TestARefusedPodIsWrittenAndTriedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, machine(""))
	refuse := true
	r.kube.PrependReactor("create", "pods", func(ktesting.Action) (bool, runtime.Object, error) {
		return refuse, nil, apierrors.NewForbidden(corev1.Resource("pods"), "x", errors.New("exceeded quota"))
	})
	for range 3 {
		_, err := r.reconcile(t.Context(), key)
		require.ErrorContains(t, err, "exceeded quota")
		require.NotErrorIs(t, err, vmi.ErrInvalid, "it is worth another try")
	}
	require.Len(t, r.server.patches, 1)
	c := r.server.machine.Status.Condition(vmi.ConditionSynchronized)
	require.Equal(t, "FailedCreate", c.Reason)
	require.Contains(t, c.Message, "exceeded quota")

	refuse = false
	_, err := r.reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Nil(t, r.server.machine.Status.Condition(vmi.ConditionSynchronized))
}

func TestAnAPIServerThatFailsIsNoRefusal(t *testing.T) {
	t.Parallel()
	r := newRig(t, machine(""))
	r.kube.PrependReactor("create", "pods", func(ktesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewInternalError(errors.New("etcd"))
	})
	_, err := r.reconcile(t.Context(), key)
	require.ErrorContains(t, err, "create pod default/")
	require.Empty(t, r.server.patches)
}

func TestAPodThatExistsIsTheMachinesOrIsSaid(t *testing.T) {
	t.Parallel()
	r := newRig(t, machine(""), launcher(t))
	_, err := r.reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, vmi.Scheduling, r.server.machine.Status.Phase)

	strange := launcher(t)
	strange.OwnerReferences = nil
	r = newRig(t, machine(""), strange)
	_, err = r.reconcile(t.Context(), key)
	require.ErrorContains(t, err, "PodNameTaken")
	require.Equal(t, "PodNameTaken", r.server.machine.Status.Condition(vmi.ConditionSynchronized).Reason)
}

func TestTheAPIServerHasTheWordWhetherAPodIsGone(t *testing.T) {
	t.Parallel()
	r := newRig(t, machine(vmi.Scheduling), launcher(t))
	_, err := r.reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, vmi.Scheduling, r.server.machine.Status.Phase, "the cache of pods is empty, but the pod exists")

	r = newRig(t, machine(vmi.Scheduling))
	_, err = r.reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, vmi.Failed, r.server.machine.Status.Phase)
}

func TestTheAPIServerHasTheWordWhetherAPodWasReplaced(t *testing.T) {
	t.Parallel()
	v := machine(vmi.Running)
	v.Status.NodeName = "n1"
	v.Status.ActivePods = map[types.UID]string{"pod-uid": "n1"}
	r := newRig(t, v, launcher(t))
	refused := launcher(t) // by its node, before the machine got the one that runs
	refused.UID, refused.Status.Phase = "refused", corev1.PodFailed
	require.NoError(t, r.Controller.pods.GetIndexer().Add(refused))
	_, err := r.reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, vmi.Running, r.server.machine.Status.Phase, "the cache of pods is behind")

	require.NoError(t, r.kube.CoreV1().Pods("default").Delete(t.Context(), refused.Name, metav1.DeleteOptions{}))
	_, err = r.reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, vmi.Failed, r.server.machine.Status.Phase)
}

func TestADeletedMachineLosesItsPodAndThenItsFinalizer(t *testing.T) {
	t.Parallel()
	v := machine(vmi.Scheduling)
	v.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	r := newRig(t, v, launcher(t))
	_, err := r.reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Empty(t, r.pods(t))
	require.Empty(t, r.server.patches)
	_, err = r.reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Empty(t, r.server.machine.Finalizers)
}

func TestAMachineThatIsGoneIsNothingToDo(t *testing.T) {
	t.Parallel()
	r := newRig(t, machine(""))
	after, err := r.reconcile(t.Context(), "default/other")
	require.NoError(t, err)
	require.Zero(t, after)
}

func TestNewNeedsWhatItCannotGuess(t *testing.T) {
	t.Parallel()
	_, err := New(Config{})
	require.ErrorContains(t, err, "required")
}

func TestMachineOf(t *testing.T) {
	t.Parallel()
	p := launcher(t)
	got, ok := machineOf(p)
	require.True(t, ok)
	require.Equal(t, key, got)
	p.OwnerReferences = nil
	_, ok = machineOf(p)
	require.False(t, ok)
}

func TestWhatIsCachedOfAPod(t *testing.T) {
	t.Parallel()
	p := launcher(t)
	r := newRig(t, machine(vmi.Running), p)
	none, v := r.Cached(p.Namespace, p.Name)
	require.Nil(t, none, "it was not seen yet")
	require.Nil(t, v)
	require.NoError(t, r.Controller.pods.GetIndexer().Add(p))
	got, v := r.Cached(p.Namespace, p.Name)
	require.Equal(t, p, got)
	require.Equal(t, "testvmi", v.Name)
	require.NoError(t, r.machines.GetIndexer().Delete(v))
	got, v = r.Cached(p.Namespace, p.Name)
	require.Equal(t, p, got)
	require.Nil(t, v)
	stray := p.DeepCopy()
	stray.Name, stray.OwnerReferences = "stray", nil
	require.NoError(t, r.Controller.pods.GetIndexer().Add(stray))
	got, v = r.Cached(p.Namespace, "stray")
	require.Equal(t, stray, got)
	require.Nil(t, v)
}
