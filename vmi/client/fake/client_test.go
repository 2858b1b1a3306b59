package fake_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// pods are a kind of Kubernetes' own.
var pods = vmi.Define[corev1.Pod, corev1.PodList](vmi.Definition{
	GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Pod"), Plural: "pods", Status: true, Selectable: []string{"spec.nodeName"},
})

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": name}}}
}

func TestATypedClientOfKubernetesWorks(t *testing.T) {
	s := fake.Serving([]vmi.Definition{pods.Definition}, pod("a"))
	c, err := kubernetes.NewForConfig(s.Config())
	require.NoError(t, err)
	_, err = c.CoreV1().Pods("default").Create(t.Context(), pod("b"), metav1.CreateOptions{})
	require.NoError(t, err)
	all, err := c.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=b"})
	require.NoError(t, err)
	require.Len(t, all.Items, 1)

	f := informers.NewSharedInformerFactory(c, 0)
	lister := f.Core().V1().Pods().Lister()
	ctx, cancel := context.WithCancel(t.Context())
	f.Start(ctx.Done())
	for _, synced := range f.WaitForCacheSync(ctx.Done()) {
		require.True(t, synced)
	}
	held, err := lister.Pods("default").List(labels.Everything())
	require.NoError(t, err)
	require.Len(t, held, 2)
	cancel()
	f.Shutdown()
}

func TestABodyThatIsNoJSONIsRefusedAsForCustomResources(t *testing.T) {
	s := fake.Serving([]vmi.Definition{pods.Definition}, pod("a"))
	cfg := s.Config()
	cfg.ContentType = runtime.ContentTypeProtobuf
	c, err := kubernetes.NewForConfig(cfg)
	require.NoError(t, err)
	_, err = c.CoreV1().Pods("default").Create(t.Context(), pod("b"), metav1.CreateOptions{})
	require.True(t, apierrors.IsUnsupportedMediaType(err), "%v", err)
	require.ErrorContains(t, err, "application/vnd.kubernetes.protobuf")
	_, err = c.CoreV1().Pods("default").Update(t.Context(), pod("a"), metav1.UpdateOptions{})
	require.True(t, apierrors.IsUnsupportedMediaType(err), "%v", err)
	require.True(t, apierrors.IsUnsupportedMediaType(c.CoreV1().Pods("default").Delete(t.Context(), "a", metav1.DeleteOptions{})))
}

func TestABodyMayBeYAML(t *testing.T) {
	s := fake.New()
	r := httptest.NewRequest(http.MethodPost, "/apis/kubevirt.io/v1/namespaces/default/virtualmachines", strings.NewReader("apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: web}\n"))
	r.Header.Set("Content-Type", "application/yaml")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
}

func TestAnObjectThatIsAddedIsWatchedWithItsStatus(t *testing.T) {
	s := fake.New()
	c, err := client.New(s.Config())
	require.NoError(t, err)
	w, err := c.VirtualMachineInstances("default").Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer w.Stop()
	s.Add(vmitest.New(vmitest.InPhase(vmi.PhaseRunning)))
	e := <-w.ResultChan()
	require.Equal(t, watch.Added, e.Type)
	require.Equal(t, vmi.PhaseRunning, e.Object.(*vmi.VirtualMachineInstance).Status.Phase)
	require.Panics(t, func() { s.Add(vmitest.New()) }, "it is there already")
}

// A program that ignores that an object is not found must not be green because the fake
// does not have its kind.
func TestAPathThatIsNotServedIsNoAbsence(t *testing.T) {
	s := fake.New(vmitest.NewVM(vmi.RunHalted))
	c, err := kubernetes.NewForConfig(s.Config())
	require.NoError(t, err)
	ours, err := client.New(s.Config())
	require.NoError(t, err)
	raw := func(path string) error { return c.Discovery().RESTClient().Get().AbsPath(path).Do(t.Context()).Error() }
	get := func() error {
		_, err := c.CoreV1().Pods("default").Get(t.Context(), "a", metav1.GetOptions{})
		return err
	}
	for path, tt := range map[string]struct {
		ask  func() error
		help string
	}{
		"GET /api/v1/namespaces/default/pods/a": {get, "give fake.Serving the definition of the kind"},
		"DELETE /api/v1/namespaces/default/pods/a": {func() error {
			return c.CoreV1().Pods("default").Delete(t.Context(), "a", metav1.DeleteOptions{})
		}, "give fake.Serving the definition of the kind"},
		"GET /apis/kubevirt.io/v1/virtualmachines/a": {func() error {
			_, err := ours.VirtualMachines("").Get(t.Context(), "a", metav1.GetOptions{})
			return err
		}, "objects of the kind VirtualMachine are in a namespace, which the client must have"},
		"GET /apis/kubevirt.io/v1/namespaces/default/kubevirts/a/scale": {func() error {
			_, err := ours.KubeVirts("default").GetScale(t.Context(), "a", metav1.GetOptions{})
			return err
		}, "the kind KubeVirt has no such subresource"},
		"GET /apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachines/a/dance": {func() error {
			return raw("/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachines/a/dance")
		}, "there is no such verb"},
		"GET /apis/subresources.kubevirt.io/v1/virtualmachines/a/start": {func() error {
			return raw("/apis/subresources.kubevirt.io/v1/virtualmachines/a/start")
		}, "verbs are called of an object in a namespace"},
		"GET /healthz/etcd": {func() error { return raw("/healthz/etcd") }, "give fake.Serving the definition of the kind"},
	} {
		t.Run(path, func(t *testing.T) {
			err := tt.ask()
			require.False(t, err == nil || apierrors.IsNotFound(err), "%v", err)
			require.ErrorContains(t, err, "the fake API server does not serve "+path+": "+tt.help)
		})
	}
	_, err = ours.VirtualMachines("default").Get(t.Context(), "other", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "an object that is not there: %v", err)
	_, err = client.WaitFor(t.Context(), client.Of(ours, pods, "default"), "a", func(*corev1.Pod) (bool, error) { return true, nil })
	require.ErrorContains(t, err, "does not serve", "a wait does not last for ever")
}

func TestTheDiscoveryNamesWhatIsServed(t *testing.T) {
	cfg := fake.Serving([]vmi.Definition{pods.Definition}).Config()
	c, err := discovery.NewDiscoveryClientForConfig(cfg)
	require.NoError(t, err)
	for name, legacy := range map[string]bool{"aggregated": false, "by group": true} {
		t.Run(name, func(t *testing.T) {
			c.UseLegacyDiscovery = legacy
			groups, err := restmapper.GetAPIGroupResources(c)
			require.NoError(t, err)
			mapper := restmapper.NewDiscoveryRESTMapper(groups)
			m, err := mapper.RESTMapping(vmi.VirtualMachines.GroupKind())
			require.NoError(t, err)
			require.Equal(t, vmi.VirtualMachines.Resource(), m.Resource)
			require.Equal(t, meta.RESTScopeNameNamespace, m.Scope.Name())
			m, err = mapper.RESTMapping(schema.GroupKind{Kind: "Pod"})
			require.NoError(t, err)
			require.Equal(t, pods.Resource(), m.Resource)
			_, err = mapper.RESTMapping(schema.GroupKind{Kind: "Node"})
			require.True(t, meta.IsNoMatchError(err), "%v", err)

			_, lists, err := c.ServerGroupsAndResources()
			require.NoError(t, err)
			names := map[string]metav1.APIResource{}
			for _, l := range lists {
				for _, r := range l.APIResources {
					names[l.GroupVersion+"/"+r.Name] = r
				}
			}
			require.Equal(t, []string{"vmi", "vmis"}, names["kubevirt.io/v1/virtualmachineinstances"].ShortNames)
			require.Equal(t, "Scale", names["kubevirt.io/v1/virtualmachineinstancereplicasets/scale"].Kind)
			require.Equal(t, "autoscaling", names["kubevirt.io/v1/virtualmachineinstancereplicasets/scale"].Group)
			require.Contains(t, names["kubevirt.io/v1/virtualmachines/status"].Verbs, "update")
			require.Contains(t, names, "subresources.kubevirt.io/v1/virtualmachines/start")
			require.NotContains(t, names, "v1/pods/scale")
		})
	}
	v, err := c.ServerVersion()
	require.NoError(t, err)
	require.Equal(t, "v1.37.0", v.GitVersion)
	_, err = c.ServerResourcesForGroupVersion("apps/v1")
	require.True(t, apierrors.IsNotFound(err), "as of an API server: %v", err)
}

func TestADynamicClientAndItsInformerFactoryWork(t *testing.T) {
	s := fake.New(vmitest.NewVM(vmi.RunHalted))
	c, err := dynamic.NewForConfig(s.Config())
	require.NoError(t, err)
	vms := c.Resource(vmi.VirtualMachines.Resource()).Namespace("default")
	vm, err := vms.Get(t.Context(), "testvmi", metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, unstructured.SetNestedField(vm.Object, "Always", "spec", "runStrategy"))
	vm, err = vms.Update(t.Context(), vm, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 2, vm.GetGeneration())
	applied := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": map[string]any{"name": "testvmi", "labels": map[string]any{"a": "b"}},
	}}
	_, err = vms.Apply(t.Context(), "testvmi", applied, metav1.ApplyOptions{FieldManager: "m"})
	require.NoError(t, err)

	f := dynamicinformer.NewDynamicSharedInformerFactory(c, 0)
	l := f.ForResource(vmi.VirtualMachines.Resource()).Lister().ByNamespace("default")
	ctx, cancel := context.WithCancel(t.Context())
	f.Start(ctx.Done())
	require.True(t, f.WaitForCacheSync(ctx.Done())[vmi.VirtualMachines.Resource()])
	held, err := l.List(labels.SelectorFromSet(labels.Set{"a": "b"}))
	require.NoError(t, err)
	require.Len(t, held, 1)
	require.NoError(t, vms.Delete(t.Context(), "testvmi", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool { _, err := l.Get("testvmi"); return apierrors.IsNotFound(err) }, time.Minute, time.Millisecond)
	cancel()
	f.Shutdown()
}

func TestUnknownFieldsAreRefusedWhereThatIsAskedFor(t *testing.T) {
	c, err := client.New(fake.New(vmitest.NewVM(vmi.RunHalted)).Config())
	require.NoError(t, err)
	vms := c.VirtualMachines("default")
	patch := func(opts metav1.PatchOptions) error {
		_, err := vms.Patch(t.Context(), "testvmi", "application/merge-patch+json", []byte(`{"spec": {"color": "red"}}`), opts)
		return err
	}
	err = patch(metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict})
	require.True(t, apierrors.IsBadRequest(err), "%v", err)
	require.ErrorContains(t, err, `strict decoding error: unknown field "spec.color"`)
	require.NoError(t, patch(metav1.PatchOptions{}))
}
