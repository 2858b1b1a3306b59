package live_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata/fake"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config/live"
)

// cluster holds KubeVirts and answers as an API server does.
type cluster struct {
	mu     sync.Mutex
	items  []vmi.KubeVirt
	err    error
	events *watch.FakeWatcher
}

func newCluster(items ...vmi.KubeVirt) *cluster {
	return &cluster{items: items, events: watch.NewFakeWithChanSize(10, false)}
}

func (c *cluster) Get(context.Context, string, metav1.GetOptions) (*vmi.KubeVirt, error) {
	return nil, apierrors.NewMethodNotSupported(vmi.KubeVirts.Resource().GroupResource(), "get") // a watcher lists
}

func (c *cluster) List(context.Context, metav1.ListOptions) (*vmi.KubeVirtList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &vmi.KubeVirtList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: c.items}, c.err
}

func (c *cluster) Watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if o.SendInitialEvents != nil {
		return nil, apierrors.NewInvalid(vmi.KubeVirts.GroupKind(), "", nil) // list first
	}
	return c.events, nil
}

// kubevirt has a state that its resourceVersion names.
func kubevirt(version string, r string) vmi.KubeVirt {
	k := vmi.KubeVirt{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "kubevirt", UID: "1", ResourceVersion: version, Generation: 1}}
	k.Spec.Configuration.AdditionalGuestMemoryOverheadRatio = &r
	return k
}

// start runs a watcher until the test ends.
func start(t *testing.T, c live.Config) *live.Watcher {
	t.Helper()
	w, err := live.New(c)
	require.NoError(t, err)
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	return w
}

func Example() {
	w, err := live.New(live.Config{KubeVirts: newCluster(kubevirt("1", "1.5"))})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { _ = w.Run(ctx) }()
	if w.Wait(ctx) {
		fmt.Println(w.State().Config.Pods.OverheadRatio)
	}
	// Output: 1.5
}

func TestAChangeCallsOnChange(t *testing.T) {
	t.Parallel()
	c := newCluster(kubevirt("1", "2"))
	w := start(t, live.Config{KubeVirts: c})
	changed := make(chan struct{}, 10)
	w.OnChange(func() { changed <- struct{}{} })
	require.True(t, w.Wait(t.Context()))
	require.Equal(t, "1", w.Facts()["config-resource-version"])

	next := kubevirt("2", "3")
	c.events.Modify(&next)
	require.Eventually(t, func() bool { <-changed; return w.State().Config.Pods.OverheadRatio == 3 }, time.Minute, time.Millisecond)
	require.Equal(t, "2", w.Facts()["config-resource-version"])

	broken := kubevirt("3", "x")
	c.events.Modify(&broken)
	require.Eventually(t, func() bool { <-changed; return len(w.State().Faults) == 1 }, time.Minute, time.Millisecond)
	require.Equal(t, 3.0, w.State().Config.Pods.OverheadRatio)

	c.events.Delete(&broken)
	require.Eventually(t, func() bool { <-changed; return w.State().KubeVirt == nil }, time.Minute, time.Millisecond)
	require.Equal(t, map[string]string{"config-resource-version": ""}, w.Facts())
}

func TestAClusterWithoutTheKindHasTheDefaults(t *testing.T) {
	t.Parallel()
	c := newCluster()
	c.err = apierrors.NewNotFound(vmi.KubeVirts.Resource().GroupResource(), "")
	w := start(t, live.Config{KubeVirts: c})
	require.True(t, w.Wait(t.Context()))
	require.Zero(t, w.State().Config)
}

func TestAnAPIServerThatFailsLeavesTheConfigurationUnknown(t *testing.T) {
	t.Parallel()
	c := newCluster()
	c.err = apierrors.NewInternalError(fmt.Errorf("etcd"))
	w := start(t, live.Config{KubeVirts: c})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.False(t, w.Wait(ctx))
	require.False(t, w.Known())
}

// definition is a definition of a kind with these labels.
func definition(labels map[string]string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "virtualmachineinstances.kubevirt.io", Labels: labels},
	}
}

func TestAnInstallationOfKubeVirtIsNoticed(t *testing.T) {
	t.Parallel()
	s := runtime.NewScheme()
	require.NoError(t, metav1.AddMetaToScheme(s))
	f := fake.NewSimpleMetadataClient(s, definition(nil))
	w := start(t, live.Config{KubeVirts: newCluster(), Metadata: f})
	changed := make(chan struct{}, 10)
	w.OnChange(func() { changed <- struct{}{} })
	require.True(t, w.Wait(t.Context()))
	require.Empty(t, w.OtherInstallation())

	gvr := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	require.NoError(t, f.Tracker().Update(gvr, definition(map[string]string{"app.kubernetes.io/managed-by": "virt-operator"}), ""))
	require.Eventually(t, func() bool { <-changed; return w.OtherInstallation() != "" }, time.Minute, time.Millisecond)
	require.Contains(t, w.Facts()["suspended"], "KubeVirt is installed")
}

// The annotation is that of the manifest, which is written with the code.
func TestTheStatusesAreOwnWhileTheDefinitionIsOfThisVersion(t *testing.T) {
	t.Parallel()
	s := runtime.NewScheme()
	require.NoError(t, metav1.AddMetaToScheme(s))
	data, err := os.ReadFile("../../../manifests/crds/kubevirt.io_virtualmachineinstances.yaml")
	require.NoError(t, err)
	own, other, none := definition(nil), definition(nil), definition(nil)
	require.NoError(t, yaml.Unmarshal(data, own))
	other.Annotations = map[string]string{"podvisor.io/status-fields": "0"}
	idle, err := live.New(live.Config{KubeVirts: newCluster(), Metadata: fake.NewSimpleMetadataClient(s, own)})
	require.NoError(t, err)
	require.False(t, idle.OwnStatuses(), "not known yet")
	f := fake.NewSimpleMetadataClient(s, other)
	w := start(t, live.Config{KubeVirts: newCluster(), Metadata: f})
	changed := make(chan struct{}, 10)
	w.OnChange(func() { changed <- struct{}{} })
	require.True(t, w.Wait(t.Context()))
	require.False(t, w.OwnStatuses())

	gvr := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	for _, tt := range []struct {
		of  *metav1.PartialObjectMetadata
		own bool
	}{{own, true}, {none, false}, {own, true}, {other, false}} {
		require.NoError(t, f.Tracker().Update(gvr, tt.of, ""))
		require.Eventually(t, func() bool { <-changed; return w.OwnStatuses() == tt.own }, time.Minute, time.Millisecond)
	}
}

func TestNewNeedsAClient(t *testing.T) {
	t.Parallel()
	_, err := live.New(live.Config{})
	require.EqualError(t, err, "live.Config: set KubeVirts")
}

// foreign labels the definition as KubeVirt's own, or takes the label away.
func foreign(t *testing.T, f *fake.FakeMetadataClient, is bool) {
	t.Helper()
	gvr := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	labels := map[bool]map[string]string{true: {"app.kubernetes.io/managed-by": "virt-operator"}}[is]
	require.NoError(t, f.Tracker().Update(gvr, definition(labels), ""))
}

func TestAloneStopsWithKubeVirtAndStartsWithoutIt(t *testing.T) {
	t.Parallel()
	s := runtime.NewScheme()
	require.NoError(t, metav1.AddMetaToScheme(s))
	f := fake.NewSimpleMetadataClient(s, definition(map[string]string{"operator.kubevirt.io": ""}))
	w, err := live.New(live.Config{KubeVirts: newCluster(), Metadata: f})
	require.NoError(t, err)
	runs := make(chan bool, 10) // true: begins, false: has ended
	alone := w.Alone(func(ctx context.Context) error {
		runs <- true
		<-ctx.Done()
		runs <- false
		return nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = w.Run(ctx) })
	done := make(chan error, 1)
	go func() { done <- alone(ctx) }()
	require.True(t, w.Wait(ctx))
	require.ErrorContains(t, w.Ready(), "KubeVirt is installed")
	for _, is := range []bool{false, true, false} {
		require.Empty(t, runs)
		foreign(t, f, is)
		require.Equal(t, !is, <-runs)
	}
	require.NoError(t, w.Ready())
	cancel()
	require.False(t, <-runs)
	require.NoError(t, <-done)
	wg.Wait()
}

func TestAFunctionThatEndsIsNotStartedAgain(t *testing.T) {
	t.Parallel()
	w := start(t, live.Config{KubeVirts: newCluster()})
	n := 0
	err := w.Alone(func(context.Context) error { n++; return fmt.Errorf("broken") })(t.Context())
	require.EqualError(t, err, "broken")
	require.Equal(t, 1, n)
}

func TestAWatcherThatDoesNotRunHasNoKubeVirts(t *testing.T) {
	t.Parallel()
	c := newCluster(kubevirt("1", "1"))
	w, err := live.New(live.Config{KubeVirts: c})
	require.NoError(t, err)
	require.Empty(t, w.KubeVirts())
	require.ErrorContains(t, w.Ready(), "not known")
	require.Len(t, func() []*vmi.KubeVirt {
		w := start(t, live.Config{KubeVirts: c})
		w.Wait(t.Context())
		return w.KubeVirts()
	}(), 1)
}

func TestWhatIsRemovedIsNotCalled(t *testing.T) {
	t.Parallel()
	c := newCluster(kubevirt("1", "2"))
	w := start(t, live.Config{KubeVirts: c})
	var kept, removed atomic.Value
	remove := w.OnChange(func() { removed.Store(w.Config().Pods.OverheadRatio) })
	w.OnChange(func() { kept.Store(w.Config().Pods.OverheadRatio) })
	require.True(t, w.Wait(t.Context()))
	require.EqualValues(t, 2, removed.Load())
	remove()
	remove()
	next := kubevirt("2", "3")
	c.events.Modify(&next)
	require.Eventually(t, func() bool { return kept.Load() == 3.0 }, time.Minute, time.Millisecond)
	require.EqualValues(t, 2, removed.Load())
}

func TestAWatcherRunsOnceAndHasItsMetricWhileItRuns(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	w, err := live.New(live.Config{KubeVirts: newCluster(), Metrics: reg})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	require.True(t, w.Wait(ctx))
	all, err := reg.Gather()
	require.NoError(t, err)
	require.Equal(t, "podvisor_unreadable_objects", all[0].GetName())
	require.ErrorContains(t, w.Run(ctx), "has run already")
	cancel()
	require.NoError(t, <-done)
	all, err = reg.Gather()
	require.NoError(t, err)
	require.Empty(t, all)
}
