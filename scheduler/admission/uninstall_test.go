package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/podvisor/podvisor/internal/certificate"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// installation is Podvisor in the namespace kubevirt, with these VMIs.
type installation struct {
	kube *fake.Clientset
	meta *metadatafake.FakeMetadataClient
	// held is whether the webhook stays in force after its deletion.
	held *bool
	Uninstalls
}

func newInstallation(t *testing.T, vmis ...string) installation {
	t.Helper()
	s := runtime.NewScheme()
	require.NoError(t, metav1.AddMetaToScheme(s))
	for _, k := range []schema.GroupVersionKind{vmi.VirtualMachineInstances.GroupVersionKind, certificate.APIServiceResource.GroupVersion().WithKind("APIService")} {
		s.AddKnownTypeWithName(k.GroupVersion().WithKind(k.Kind+"List"), &metav1.PartialObjectMetadataList{})
	}
	i := installation{
		kube: fake.NewClientset(
			&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "virt-handler"}},
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "h", Labels: map[string]string{vmi.AppLabel: "virt-handler"}}},
		),
		meta: metadatafake.NewSimpleMetadataClient(s),
	}
	for _, name := range certificate.APIServices() {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
		o.SetGroupVersionKind(certificate.APIServiceResource.GroupVersion().WithKind("APIService"))
		require.NoError(t, i.meta.Tracker().Create(certificate.APIServiceResource, o, ""))
	}
	for _, name := range vmis {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		o.SetGroupVersionKind(vmi.VirtualMachineInstances.GroupVersionKind)
		require.NoError(t, i.meta.Tracker().Create(vmi.VirtualMachineInstances.Resource(), o, "shop"))
	}
	i.held = new(bool)
	i.Uninstalls = Uninstalls{Kube: i.kube, Metadata: i.meta, Namespace: "kubevirt", Wait: time.Minute,
		Hold: func(_ context.Context, held bool) error { *i.held = held; return nil }}
	// What the garbage collector and the kubelet do.
	i.kube.PrependReactor("delete", "daemonsets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return false, nil, i.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "kubevirt", "h")
	})
	return i
}

// review requests a review and returns the message of a refusal, or "". The name may be
// that of a namespace, a slash and that of an object in it.
func (i installation) review(t *testing.T, resource, name string, dryRun bool) string {
	t.Helper()
	namespace, name, in := strings.Cut(name, "/")
	if !in {
		namespace, name = "", namespace
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
		UID: "1", Operation: admissionv1.Delete, Namespace: namespace, Name: name, Resource: metav1.GroupVersionResource{Resource: resource}, DryRun: &dryRun,
	}})
	require.NoError(t, err)
	out := httptest.NewRecorder()
	i.ServeHTTP(out, httptest.NewRequestWithContext(t.Context(), http.MethodPost, UninstallPath, bytes.NewReader(body)))
	require.Equal(t, http.StatusOK, out.Code)
	var answer admissionv1.AdmissionReview
	require.NoError(t, json.Unmarshal(out.Body.Bytes(), &answer))
	if answer.Response.Allowed {
		return ""
	}
	require.Equal(t, metav1.StatusReasonConflict, answer.Response.Result.Reason)
	return answer.Response.Result.Message
}

func (i installation) handlers(t *testing.T) (daemonSets int) {
	t.Helper()
	list, err := i.kube.AppsV1().DaemonSets("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return len(list.Items)
}

const definitionOfVMIs = "virtualmachineinstances.kubevirt.io"

func TestTheDeletionOfPodvisorIsReviewed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, resource, object string
		vmis                   []string
		dryRun                 bool
		// refusal is a part of the message. Empty: it is allowed.
		refusal string
		ended   bool // virt-handler is
	}{
		{name: "the namespace with a VMI", resource: "namespaces", object: "kubevirt", vmis: []string{"a"}, refusal: "VirtualMachineInstance shop/a would be left without Podvisor"},
		{name: "a role with a VMI", resource: "clusterroles", object: "virt-handler", vmis: []string{"a"}, refusal: "kubectl delete vm,vmirs,vmi --all --all-namespaces"},
		{name: "a dry run with a VMI", resource: "namespaces", object: "kubevirt", vmis: []string{"a"}, dryRun: true, refusal: "shop/a"},
		{name: "another namespace with a VMI", resource: "namespaces", object: "other", vmis: []string{"a"}},
		{name: "the namespace without VMIs", resource: "namespaces", object: "kubevirt", ended: true},
		{name: "the definition without VMIs", resource: "customresourcedefinitions", object: definitionOfVMIs, ended: true},
		{name: "another definition without VMIs", resource: "customresourcedefinitions", object: "kubevirts.kubevirt.io"},
		{name: "a role without VMIs", resource: "clusterroles", object: "virt-handler"},
		{name: "what Helm deletes first, with a VMI", resource: "configmaps", object: "kubevirt/virt-controller-uninstall", vmis: []string{"a"}, refusal: "VirtualMachineInstance shop/a would be left"},
		{name: "what Helm deletes first, without VMIs", resource: "configmaps", object: "kubevirt/virt-controller-uninstall", ended: true},
		{name: "the same in another namespace with a VMI", resource: "configmaps", object: "other/virt-controller-uninstall", vmis: []string{"a"}},
		{name: "a dry run without VMIs", resource: "namespaces", object: "kubevirt", dryRun: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			i := newInstallation(t, tt.vmis...)
			message := i.review(t, tt.resource, tt.object, tt.dryRun)
			if tt.refusal == "" {
				require.Empty(t, message)
			} else {
				require.Contains(t, message, tt.refusal)
			}
			require.Equal(t, !tt.ended, i.handlers(t) == 1, "virt-handler runs on")
			_, err := i.meta.Resource(certificate.APIServiceResource).Get(t.Context(), certificate.APIServices()[0], metav1.GetOptions{})
			require.Equal(t, tt.ended, apierrors.IsNotFound(err), "the verbs are not served any more: %v", err)
			require.Equal(t, tt.refusal != "" && !tt.dryRun, *i.held)
			if tt.ended {
				*i.held = true
				require.Empty(t, i.review(t, tt.resource, tt.object, false), "once more")
				require.False(t, *i.held)
			}
		})
	}
}

// With the definition of VMs the API server would delete all VMs.
func TestTheDeletionIsRefusedWhileThereIsAnObjectOfAnyKindThatRunsGuests(t *testing.T) {
	t.Parallel()
	for _, left := range scheduler.GuestKinds() {
		i := newInstallation(t)
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		o.SetGroupVersionKind(left.GroupVersionKind)
		require.NoError(t, i.meta.Tracker().Create(left.Resource(), o, "shop"))
		require.Contains(t, i.review(t, "namespaces", "kubevirt", false), left.Kind+" shop/web would be left")
		for _, d := range scheduler.GuestKinds() {
			require.Contains(t, i.review(t, "customresourcedefinitions", d.Resource().GroupResource().String(), false), left.Kind+" shop/web would be left")
		}
		require.Equal(t, 1, i.handlers(t))
		require.NoError(t, i.meta.Tracker().Delete(left.Resource(), "shop", "web"))
		require.Empty(t, i.review(t, "customresourcedefinitions", left.Resource().GroupResource().String(), false))
		require.Zero(t, i.handlers(t), "without its objects, the deletion of a definition begins an uninstall")
	}
}

func TestAPodOfVirtHandlerThatDoesNotEndIsNotWaitedForLong(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.kube.ReactionChain = i.kube.ReactionChain[1:]
	i.Wait = 50 * time.Millisecond
	require.Empty(t, i.review(t, "namespaces", "kubevirt", false))
	require.Zero(t, i.handlers(t))
}

func TestAVMIThatIsCreatedWhileVirtHandlerEndsIsNotLeft(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.kube.PrependReactor("delete", "daemonsets", func(clienttesting.Action) (bool, runtime.Object, error) {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "late"}}
		o.SetGroupVersionKind(vmi.VirtualMachineInstances.GroupVersionKind)
		return false, nil, i.meta.Tracker().Create(vmi.VirtualMachineInstances.Resource(), o, "shop")
	})
	require.Contains(t, i.review(t, "namespaces", "kubevirt", false), "VirtualMachineInstance shop/late would be left")
}

func TestTheDeletionOfPodvisorIsRefusedWhenTheVMIsAreNotKnown(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.meta.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("connection refused")
	})
	require.Contains(t, i.review(t, "namespaces", "kubevirt", false), "list the objects that need it: connection refused; try again")
}

func TestTheDeletionGoesOnWithoutTheKindAndTheRights(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"the kind is gone":    apierrors.NewNotFound(vmi.VirtualMachineInstances.Resource().GroupResource(), ""),
		"the role is gone":    apierrors.NewForbidden(vmi.VirtualMachineInstances.Resource().GroupResource(), "", errors.New("no role")),
		"the account is gone": apierrors.NewUnauthorized("no account"),
	} {
		i := newInstallation(t)
		i.meta.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
		require.Empty(t, i.review(t, "clusterroles", "virt-handler", false), name)
	}
}
