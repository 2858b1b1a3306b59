package admission_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/podvisor/podvisor/scheduler/admission"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/config"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

const node = "node1"

// running is a VMI that runs, and its launcher pod.
func running(t *testing.T, s vmi.EvictionStrategy) (*vmi.VirtualMachineInstance, *corev1.Pod) {
	t.Helper()
	v := vmitest.New(vmitest.WithPhase(vmi.PhaseRunning))
	if s != "" {
		v.Spec.EvictionStrategy = &s
	}
	p, err := pod.Render(v, pod.Config{Launcher: pod.Launcher{Image: "example/virt-launcher:v1"}})
	require.NoError(t, err)
	p.UID, p.Spec.NodeName = "pod-uid", node
	v.Status.NodeName, v.Status.ActivePods = node, map[types.UID]string{p.UID: node}
	return v, p
}

// world is an API server with a VMI and its pod, and the webhook.
type world struct {
	admission.Evictions
	vmis client.VirtualMachineInstances
	pod  *corev1.Pod
	kube *kubefake.Clientset
	// on is called for each request for VMIs that the webhook sends.
	on func(*http.Request)
}

func newWorld(t *testing.T, s vmi.EvictionStrategy) *world {
	t.Helper()
	v, p := running(t, s)
	w := &world{pod: p, kube: kubefake.NewClientset(p), on: func(*http.Request) {}}
	server := fake.New(v)
	mine, err := client.New(server.Config())
	require.NoError(t, err)
	w.vmis = mine.VirtualMachineInstances(v.Namespace)
	cfg := server.Config()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			w.on(r)
			return next.RoundTrip(r)
		})
	})
	theirs, err := client.New(cfg)
	require.NoError(t, err)
	w.Evictions = admission.Evictions{Kube: w.kube, VMIs: theirs}
	return w
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// review is what the API server sends before the pod is evicted.
func (w *world) review(change ...func(*admissionv1.AdmissionRequest, *policyv1.Eviction)) *admissionv1.AdmissionReview {
	e := &policyv1.Eviction{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"},
		ObjectMeta: metav1.ObjectMeta{Namespace: w.pod.Namespace, Name: w.pod.Name},
	}
	req := &admissionv1.AdmissionRequest{
		UID: "7", Namespace: w.pod.Namespace, Name: w.pod.Name, Operation: admissionv1.Create, SubResource: "eviction",
		Kind:     metav1.GroupVersionKind{Group: "policy", Version: "v1", Kind: "Eviction"},
		Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
		DryRun:   new(bool),
	}
	for _, f := range change {
		f(req, e)
	}
	req.Object.Raw, _ = json.Marshal(e)
	return &admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: req}
}

// ask sends the review.
func (w *world) ask(t *testing.T, change ...func(*admissionv1.AdmissionRequest, *policyv1.Eviction)) *admissionv1.AdmissionResponse {
	t.Helper()
	body, err := json.Marshal(w.review(change...))
	require.NoError(t, err)
	out := httptest.NewRecorder()
	w.ServeHTTP(out, httptest.NewRequest(http.MethodPost, admission.EvictionPath, bytes.NewReader(body)))
	require.Equal(t, http.StatusOK, out.Code, out.Body.String())
	var answer admissionv1.AdmissionReview
	require.NoError(t, json.Unmarshal(out.Body.Bytes(), &answer))
	require.EqualValues(t, "7", answer.Response.UID)
	require.Equal(t, "AdmissionReview", answer.Kind)
	return answer.Response
}

// instance is the VMI as the API server holds it.
func (w *world) instance(t *testing.T) *vmi.VirtualMachineInstance {
	t.Helper()
	v, err := w.vmis.Get(t.Context(), "testvmi", metav1.GetOptions{})
	require.NoError(t, err)
	return v
}

// refused requires an answer after which the client waits and tries again.
func refused(t *testing.T, r *admissionv1.AdmissionResponse, why string) {
	t.Helper()
	require.False(t, r.Allowed)
	require.EqualValues(t, http.StatusTooManyRequests, r.Result.Code)
	require.True(t, apierrors.IsTooManyRequests(&apierrors.StatusError{ErrStatus: *r.Result}))
	require.Contains(t, r.Result.Message, why)
}

func dryRun(req *admissionv1.AdmissionRequest, _ *policyv1.Eviction) { *req.DryRun = true }

func dryRunInside(_ *admissionv1.AdmissionRequest, e *policyv1.Eviction) {
	e.DeleteOptions = &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
}

func TestTheStrategyDecidesOnAnEviction(t *testing.T) {
	t.Parallel()
	for s, why := range map[vmi.EvictionStrategy]string{
		"":                                "",
		vmi.EvictionNone:                  "",
		vmi.EvictionLiveMigrateIfPossible: "",
		vmi.EvictionLiveMigrate:           `VMI testvmi is configured with an eviction strategy but is not live-migratable`,
		vmi.EvictionExternal:              `Eviction triggered evacuation of VMI "default/testvmi"`,
	} {
		t.Run(string(s), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, s)
			before := w.instance(t)
			r := w.ask(t)
			if why == "" {
				require.Equal(t, &admissionv1.AdmissionResponse{UID: "7", Allowed: true}, r)
			} else {
				refused(t, r, why)
			}
			if s != vmi.EvictionExternal {
				require.Equal(t, before, w.instance(t), "nothing is written")
			}
		})
	}
}

func TestAnEvictionMarksTheVMIOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, vmi.EvictionExternal)
	before := w.instance(t)
	for name, how := range map[string]func(*admissionv1.AdmissionRequest, *policyv1.Eviction){
		"a dry run": dryRun,
		"a dry run in the options of the eviction": dryRunInside,
	} {
		refused(t, w.ask(t, how), "Eviction triggered")
		require.Equal(t, before, w.instance(t), "%s writes nothing", name)
	}

	refused(t, w.ask(t), "Eviction triggered")
	marked := w.instance(t)
	require.Equal(t, node, marked.Status.EvacuationNodeName)
	want := before.DeepCopy()
	requested := marked.Status.Condition(vmi.ConditionEvictionRequested)
	require.NotNil(t, requested)
	require.Equal(t, corev1.ConditionTrue, requested.Status)
	want.Status.Evacuate(node, requested.LastTransitionTime)
	want.ResourceVersion = marked.ResourceVersion
	require.Equal(t, want, marked, "nothing else is written")

	refused(t, w.ask(t), "Evacuation in progress: Eviction triggered")
	require.Equal(t, marked, w.instance(t), "what is there is not written again")
}

func TestAVMISaysThatTheDeschedulerHasAskedForItsEviction(t *testing.T) {
	t.Parallel()
	w := newWorld(t, vmi.EvictionExternal)
	descheduler := func(_ *admissionv1.AdmissionRequest, e *policyv1.Eviction) {
		e.Annotations = map[string]string{"requested-by": "sigs.k8s.io/descheduler"}
	}
	before := w.instance(t)
	refused(t, w.ask(t, descheduler, dryRun), "Eviction triggered")
	require.Equal(t, before, w.instance(t), "a dry run writes nothing")
	refused(t, w.ask(t, descheduler), "Eviction triggered")
	require.Equal(t, "descheduler", w.instance(t).Annotations["kubevirt.io/eviction-source"])
	require.Equal(t, node, w.instance(t).Status.EvacuationNodeName)

	cancelled := w.instance(t)
	cancelled.Status.Evacuate("", metav1.Now())
	_, err := w.vmis.UpdateStatus(t.Context(), cancelled, metav1.UpdateOptions{})
	require.NoError(t, err)
	refused(t, w.ask(t), "Eviction triggered")
	require.NotContains(t, w.instance(t).Annotations, "kubevirt.io/eviction-source", "it is not the descheduler that asks now")
	require.Equal(t, node, w.instance(t).Status.EvacuationNodeName)
}

func TestAnEvictionMarksAVMIThatIsToMigrate(t *testing.T) {
	t.Parallel()
	for _, s := range []vmi.EvictionStrategy{vmi.EvictionLiveMigrate, vmi.EvictionLiveMigrateIfPossible} {
		w := newWorld(t, s)
		before := w.instance(t)
		before.Status.SetCondition(vmi.Condition{Type: vmi.ConditionLiveMigratable, Status: corev1.ConditionTrue}, metav1.Now())
		_, err := w.vmis.UpdateStatus(t.Context(), before, metav1.UpdateOptions{})
		require.NoError(t, err)
		refused(t, w.ask(t, dryRun), `Eviction triggered evacuation of VMI "default/testvmi"`)
		require.Empty(t, w.instance(t).Status.EvacuationNodeName, s)
		refused(t, w.ask(t), `Eviction triggered evacuation of VMI "default/testvmi"`)
		require.Equal(t, node, w.instance(t).Status.EvacuationNodeName, s)
		refused(t, w.ask(t), `Evacuation in progress: Eviction triggered evacuation of VMI "default/testvmi": its migration waits, for what kubectl describe vmim -n default -l kubevirt.io/vmi-name=testvmi says`)
	}
}

// Every pod in the cluster's network can send a review, which must not mark a VMI,
// return anything, or cause requests.
func TestAReviewAtAnotherPathIsNotAnswered(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		token, asked string
		code         int
	}{
		"the API server":          {"secret", "/admission/evictions/secret", http.StatusOK},
		"the path without token":  {"secret", "/admission/evictions/", http.StatusNotFound},
		"a guess":                 {"secret", "/admission/evictions/secrea", http.StatusNotFound},
		"before there is a token": {"", "/admission/evictions/", http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, vmi.EvictionExternal)
			mux := http.NewServeMux()
			for at, h := range admission.AtSecretPaths(func() string { return tt.token }, map[string]http.Handler{admission.EvictionPath: w}) {
				mux.Handle(at, h)
			}
			body, err := json.Marshal(w.review())
			require.NoError(t, err)
			out := httptest.NewRecorder()
			mux.ServeHTTP(out, httptest.NewRequest(http.MethodPost, tt.asked, bytes.NewReader(body)))
			require.Equal(t, tt.code, out.Code)
			known := tt.code == http.StatusOK
			require.Equal(t, known, w.instance(t).Status.EvacuationNodeName != "")
			require.Equal(t, known, len(w.kube.Actions()) > 0, "the API server is asked")
		})
	}
}

func TestAVMIThatCannotBeMarkedIsNotEvicted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, vmi.EvictionExternal)
	w.on = func(r *http.Request) { // another write comes first
		if r.Method == http.MethodPatch {
			_, err := w.vmis.Patch(t.Context(), "testvmi", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
			require.NoError(t, err)
		}
	}
	refused(t, w.ask(t), `kubevirt failed marking the vmi for eviction: status.evacuationNodeName of VMI "default/testvmi" is not written: `)
	require.Empty(t, w.instance(t).Status.EvacuationNodeName)
	w.on = func(*http.Request) {}
	refused(t, w.ask(t), "Eviction triggered")
	require.Equal(t, node, w.instance(t).Status.EvacuationNodeName)
}

func TestTheClusterDecidesOnAnEvictionWhereTheVMIDoesNot(t *testing.T) {
	t.Parallel()
	for s, stays := range map[vmi.EvictionStrategy]bool{"": true, vmi.EvictionNone: false} {
		w := newWorld(t, s)
		w.Settings = func() config.Config {
			return config.Config{Defaults: defaults.Profile{EvictionStrategy: vmi.EvictionLiveMigrate}}
		}
		require.Equal(t, !stays, w.ask(t).Allowed, "%q", s)
	}
}

func TestAPodWithoutAVMIIsEvicted(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*testing.T, *world){
		"a pod that is not there": func(t *testing.T, w *world) {
			require.NoError(t, w.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), w.pod.Namespace, w.pod.Name))
		},
		"a pod without an owner": func(t *testing.T, w *world) { w.change(t, func(p *corev1.Pod) { p.OwnerReferences = nil }) },
		"a pod of another kind's object of this name": func(t *testing.T, w *world) {
			w.change(t, func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "ReplicaSet" })
		},
		"a pod of another group's object of this name": func(t *testing.T, w *world) {
			w.change(t, func(p *corev1.Pod) { p.OwnerReferences[0].APIVersion = "example.com/v1" })
		},
		"a pod that the VMI owns but does not control": func(t *testing.T, w *world) {
			w.change(t, func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil })
		},
		"a pod of the VMI that had this name before": func(t *testing.T, w *world) {
			w.change(t, func(p *corev1.Pod) { p.OwnerReferences[0].UID = "another" })
		},
		"a pod whose VMI is gone": func(t *testing.T, w *world) {
			require.NoError(t, w.vmis.Delete(t.Context(), "testvmi", metav1.DeleteOptions{}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, vmi.EvictionLiveMigrate)
			require.False(t, w.ask(t).Allowed)
			change(t, w)
			require.True(t, w.ask(t).Allowed)
		})
	}
}

// change makes the pod another, in the API server.
func (w *world) change(t *testing.T, f func(*corev1.Pod)) {
	t.Helper()
	f(w.pod)
	require.NoError(t, w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), w.pod, w.pod.Namespace))
}

func TestAPodThatCannotBeReadIsNotEvicted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, vmi.EvictionNone)
	w.kube.PrependReactor("get", "pods", func(ktesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("the API server is busy")
	})
	refused(t, w.ask(t), "kubevirt failed getting the vmi: pod default/"+w.pod.Name+" and its VMI are not read: the API server is busy; try again")

	w = newWorld(t, vmi.EvictionNone)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	body, err := json.Marshal(w.review())
	require.NoError(t, err)
	out := httptest.NewRecorder()
	w.ServeHTTP(out, httptest.NewRequest(http.MethodPost, admission.EvictionPath, bytes.NewReader(body)).WithContext(ctx))
	require.Contains(t, out.Body.String(), "context canceled", "the client is gone")
}

func TestTheCacheMayRefuseAnEvictionAndNeverAllowsIt(t *testing.T) {
	t.Parallel()
	v, p := running(t, vmi.EvictionLiveMigrate)
	ended := p.DeepCopy()
	ended.Status.Phase = corev1.PodFailed
	marked, _ := running(t, vmi.EvictionExternal)
	unmarked := marked.DeepCopy()
	marked.Status.EvacuationNodeName = node
	for name, tt := range map[string]struct {
		strategy vmi.EvictionStrategy
		pod      *corev1.Pod
		vmi      *vmi.VirtualMachineInstance
		asked    bool
	}{
		"a VMI that stays":                 {vmi.EvictionLiveMigrate, p, v, false},
		"a VMI that is marked":             {vmi.EvictionExternal, p, marked, false},
		"a VMI that is to be marked":       {vmi.EvictionExternal, p, unmarked, true},
		"a pod that ended, and is another": {vmi.EvictionLiveMigrate, ended, v, true},
		"a VMI that is not cached":         {vmi.EvictionLiveMigrate, p, nil, true},
		"a pod that is not cached":         {vmi.EvictionLiveMigrate, nil, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.strategy)
			w.Cached = func(namespace, name string) (*corev1.Pod, *vmi.VirtualMachineInstance) {
				require.Equal(t, []string{w.pod.Namespace, w.pod.Name}, []string{namespace, name})
				return tt.pod, tt.vmi
			}
			asked := len(w.kube.Actions())
			refused(t, w.ask(t), "VMI")
			require.Equal(t, tt.asked, len(w.kube.Actions()) > asked)
		})
	}
}
