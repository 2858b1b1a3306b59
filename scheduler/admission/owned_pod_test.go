package admission_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/podvisor/podvisor/scheduler/admission"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// rendering is that of build "mine".
var rendering = pod.Config{Launcher: pod.Launcher{Image: "podvisor/virt-launcher", Build: "mine"}}

// reviewer answers for the VMIs and what else the cluster has.
func reviewer(t *testing.T, vmis []vmi.Object, others ...runtime.Object) admission.Owned {
	t.Helper()
	c, err := client.New(fake.New(vmis...).Config())
	require.NoError(t, err)
	return admission.Owned{Owners: c, Launchers: admission.Launchers{
		Rendering: func(build string) (pod.Config, bool) { return rendering, build == rendering.Build },
		Kube:      kubefake.NewClientset(others...),
		Facts:     func(context.Context, *vmi.VirtualMachineInstance) (pod.Facts, error) { return pod.Facts{}, nil },
	}}
}

// review sends a request of virt-controller to the webhook.
func review(t *testing.T, o admission.Owned, req admissionv1.AdmissionRequest) (*metav1.Status, http.Header) {
	t.Helper()
	req.UID, req.Namespace = "1", "default"
	body, err := json.Marshal(admissionv1.AdmissionReview{Request: &req})
	require.NoError(t, err)
	out := httptest.NewRecorder()
	o.ServeHTTP(out, httptest.NewRequestWithContext(t.Context(), http.MethodPost, admission.OwnedPath, bytes.NewReader(body)))
	require.Equal(t, http.StatusOK, out.Code)
	var answer admissionv1.AdmissionReview
	require.NoError(t, json.Unmarshal(out.Body.Bytes(), &answer))
	if answer.Response.Allowed {
		return nil, out.Header()
	}
	return answer.Response.Result, out.Header()
}

// creation is the request to create the pod.
func creation(t *testing.T, p *corev1.Pod) admissionv1.AdmissionRequest {
	t.Helper()
	raw, err := json.Marshal(p)
	require.NoError(t, err)
	return admissionv1.AdmissionRequest{Operation: admissionv1.Create, Name: p.Name, Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Object: runtime.RawExtension{Raw: raw}}
}

func TestAttackAPodThatItsVMIDoesNotAskForIsRefused(t *testing.T) {
	t.Parallel()
	v := vmitest.New(vmitest.WithDisk("token", vmi.VolumeSource{ServiceAccount: &vmi.ServiceAccountVolume{ServiceAccountName: "robot"}}))
	ended := v.DeepCopy()
	ended.Name, ended.DeletionTimestamp, ended.Finalizers = "ended", new(metav1.Now()), []string{"a/b"}
	o := reviewer(t, []vmi.Object{v, ended},
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "usual"}, GlobalDefault: true},
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "system-node-critical"}})
	asked, err := pod.Render(v, rendering)
	require.NoError(t, err)
	const onlyOwner = "only that one VirtualMachineInstance controls"
	for name, tt := range map[string]struct {
		change func(*corev1.Pod)
		says   string
	}{
		"as it is rendered":              {func(*corev1.Pod) {}, ""},
		"of another account":             {func(p *corev1.Pod) { p.Spec.ServiceAccountName = "admin" }, "asks for a pod with another spec.serviceAccountName"},
		"of the default account":         {func(p *corev1.Pod) { p.Spec.ServiceAccountName = "" }, "asks for a pod with another spec.serviceAccountName"},
		"with the class of all pods":     {func(p *corev1.Pod) { p.Spec.PriorityClassName = "usual" }, ""},
		"with a class of the system":     {func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-node-critical" }, "another spec.priorityClassName"},
		"with a class that is not there": {func(p *corev1.Pod) { p.Spec.PriorityClassName = "gone" }, "another spec.priorityClassName"},
		"of a VMI that is not there":     {func(p *corev1.Pod) { p.OwnerReferences[0].Name = "gone" }, "default/gone does not exist"},
		"of a VMI before":                {func(p *corev1.Pod) { p.OwnerReferences[0].UID = "before" }, "is another one than the one that is to control the pod"},
		"of a VMI that is deleted":       {func(p *corev1.Pod) { p.OwnerReferences[0].Name = "ended" }, "is being deleted"},
		"of a VM":                        {func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "VirtualMachine" }, onlyOwner},
		"of no owner":                    {func(p *corev1.Pod) { p.OwnerReferences = nil }, onlyOwner},
		"of an owner beside the VMI": {func(p *corev1.Pod) {
			p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{Kind: "Node"})
		}, onlyOwner},
		"of a VMI that does not control":   {func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil }, onlyOwner},
		"that is not a target by its name": {func(p *corev1.Pod) { p.Labels[vmi.MigrationJobLabel] = "m1" }, "does not name it"},
		"that attaches volumes":            {func(p *corev1.Pod) { p.Labels[vmi.AppLabel] = vmi.AttachmentApp }, "has no pod"},
	} {
		p := asked.DeepCopy()
		tt.change(p)
		status, _ := review(t, o, creation(t, p))
		if tt.says == "" {
			require.Nil(t, status, "a pod %s", name)
			continue
		}
		require.NotNil(t, status, "a pod %s", name)
		require.Contains(t, status.Message, tt.says, "a pod %s", name)
		require.Equal(t, metav1.StatusReasonForbidden, status.Reason, "a pod %s", name)
	}
}

// In an upgrade the leader may have another build than the replica that answers.
func TestAPodOfAnotherBuildIsLeftToAReplicaWithThatBuild(t *testing.T) {
	t.Parallel()
	v := vmitest.New()
	o := reviewer(t, []vmi.Object{v})
	for _, build := range []string{"other", ""} {
		c := rendering
		c.Build = build
		p, err := pod.Render(v, c)
		require.NoError(t, err)
		status, header := review(t, o, creation(t, p))
		require.NotNil(t, status)
		require.Equal(t, metav1.StatusReasonServiceUnavailable, status.Reason)
		require.Contains(t, status.Message, "another build of virt-controller")
		require.EqualValues(t, 1, status.Details.RetryAfterSeconds, "the client tries again by itself")
		require.Equal(t, "close", header.Get("Connection"), "and may reach another replica")
	}
}

func TestAPodThatIsBeingCreatedIsReviewedWithoutRenderingItAgain(t *testing.T) {
	t.Parallel()
	v := vmitest.New(vmitest.WithMultus("lan", "lan"))
	made, err := pod.Render(v, rendering)
	require.NoError(t, err)
	made.Annotations["only"] = "in the process"
	o := reviewer(t, nil) // the API server has no VMI
	o.Launchers.Creating = func(namespace, name, instance string, uid types.UID) *corev1.Pod {
		if namespace != v.Namespace || name != made.Name || instance != v.Name || uid != v.UID {
			return nil
		}
		return made
	}
	status, _ := review(t, o, creation(t, made))
	require.Nil(t, status)
	other := made.DeepCopy()
	other.Spec.ServiceAccountName = "admin"
	status, _ = review(t, o, creation(t, other))
	require.NotNil(t, status, "another pod is compared with what the API server has")
	require.Contains(t, status.Message, "does not exist")
}

func TestAPodOfACachedVMIIsReviewedWithoutARead(t *testing.T) {
	t.Parallel()
	v := vmitest.New(vmitest.WithMultus("lan", "lan"))
	o := reviewer(t, nil) // the API server has no VMI
	cached := v.DeepCopy()
	o.Launchers.Cached = func(namespace, name string) (*vmi.VirtualMachineInstance, pod.Facts) {
		if namespace+"/"+name != cached.Namespace+"/"+cached.Name {
			return nil, pod.Facts{}
		}
		return cached, pod.Facts{}
	}
	p, err := pod.Render(v, rendering)
	require.NoError(t, err)
	status, _ := review(t, o, creation(t, p))
	require.Nil(t, status)

	// What is in the cache may be old: a difference is one only from what is stored.
	v.Labels = map[string]string{"app": "new"}
	stored := reviewer(t, []vmi.Object{v})
	stored.Launchers.Cached = o.Launchers.Cached
	p, err = pod.Render(v, rendering)
	require.NoError(t, err)
	status, _ = review(t, stored, creation(t, p))
	require.Nil(t, status)
	p.Labels["app"] = "other"
	status, _ = review(t, stored, creation(t, p))
	require.Contains(t, status.Message, "another metadata.labels[app]")

	cached.UID = "before"
	status, _ = review(t, o, creation(t, p))
	require.Contains(t, status.Message, "does not exist", "one of that name before is another")
}

func TestAttackAStatusNamesOnlyPodsThatWereMadeForItsVMI(t *testing.T) {
	t.Parallel()
	v, other := vmitest.New(), vmitest.New(vmitest.WithName("other"))
	other.UID = "other-uid"
	launcher := func(v *vmi.VirtualMachineInstance, uid types.UID, node string, change ...func(*corev1.Pod)) *corev1.Pod {
		p, err := pod.Render(v, rendering)
		require.NoError(t, err)
		p.UID, p.Spec.NodeName = uid, node
		for _, f := range change {
			f(p)
		}
		return p
	}
	own := launcher(v, "own", "n1")
	target := launcher(v, "target", "n2", func(p *corev1.Pod) { p.Name = "virt-launcher-testvmi-vvvvv" })
	web := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web"}, Spec: corev1.PodSpec{NodeName: "n1"}}
	o := reviewer(t, nil, own, target, launcher(other, "others", "n1"), web)
	write := func(before, after map[types.UID]string, targetPod string) *metav1.Status {
		raw := func(pods map[types.UID]string) runtime.RawExtension {
			w := v.DeepCopy()
			w.Status.ActivePods, w.Status.MigrationState = pods, &vmi.MigrationState{TargetPod: targetPod}
			out, err := json.Marshal(w)
			require.NoError(t, err)
			return runtime.RawExtension{Raw: out}
		}
		status, _ := review(t, o, admissionv1.AdmissionRequest{Operation: admissionv1.Update, SubResource: "status", Name: v.Name,
			Kind: metav1.GroupVersionKind(vmi.VirtualMachineInstances.GroupVersionKind), OldObject: raw(before), Object: raw(after)})
		return status
	}
	type pods = map[types.UID]string
	for _, tt := range []struct {
		name          string
		before, after pods
		target        string
		allowed       bool
	}{
		{"the VMI's pod", nil, pods{"own": "n1"}, "", true},
		{"the one that it moves to", pods{"own": "n1"}, pods{"own": "n1", "target": "n2"}, target.Name, true},
		{"one that was there", pods{"gone": "n1"}, pods{"gone": "n1", "own": "n1"}, "", true},
		{"one less", pods{"own": "n1", "gone": "n2"}, pods{"own": "n1"}, "", true},
		{"on another node", nil, pods{"own": "n2"}, "", false},
		{"that moves to another node", pods{"own": "n1"}, pods{"own": "n2"}, "", false},
		{"a pod that is not there", nil, pods{"gone": "n1"}, "", false},
		{"one more that is not there", pods{"own": "n1"}, pods{"own": "n1", "gone": "n1"}, "", false},
		{"the pod of another VMI", nil, pods{"others": "n1"}, pod.Name(other), false},
		{"a pod of a user", nil, pods{"web": "n1"}, "web", false},
	} {
		status := write(tt.before, tt.after, tt.target)
		require.Equal(t, tt.allowed, status == nil, "%s: %v", tt.name, status)
		if status != nil {
			require.Contains(t, status.Message, "was not made for VirtualMachineInstance default/testvmi", tt.name)
		}
	}
	read := o.Launchers.Kube
	o.Launchers.Kube = kubefake.NewClientset()
	require.NotNil(t, write(nil, pods{"own": "n1"}, ""), "nothing is known of it")
	o.Launchers.CachedPod = func(_, name string) *corev1.Pod {
		if name == own.Name {
			return own
		}
		return nil
	}
	require.Nil(t, write(nil, pods{"own": "n1"}, ""), "what is cached is not read")
	o.Launchers.Kube = read
	own.UID = "before"
	require.Nil(t, write(nil, pods{"own": "n1"}, ""), "and what differs is read")
}
