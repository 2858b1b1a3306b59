package reconcile

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/podvisor/podvisor/vmi/client/informer"
)

func TestCachesKeepWhatIsRead(t *testing.T) {
	kube := fake.NewClientset(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}},
		Spec:       corev1.NodeSpec{PodCIDR: "10.0.0.0/24"},
		Status:     corev1.NodeStatus{Phase: corev1.NodeRunning},
	})
	var c Caches
	nodes := informer.Wrap[*corev1.Node](coreinformers.NewNodeInformer(kube, 0, nil))
	require.NoError(t, Cache(&c, nodes, Cached[*corev1.Node]{Keep: func(n *corev1.Node) { n.Status = corev1.NodeStatus{} }}))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { c.Run(ctx); close(done) }()
	require.True(t, c.Wait(ctx))
	got := nodes.Lister().Key("n1")
	require.Empty(t, got.ManagedFields)
	require.Empty(t, got.Status)
	require.Equal(t, "10.0.0.0/24", got.Spec.PodCIDR)
	cancel()
	<-done
	var unsynced Caches
	require.NoError(t, Cache(&unsynced, informer.Wrap[*corev1.Node](coreinformers.NewNodeInformer(kube, 0, nil)), Cached[*corev1.Node]{}))
	require.False(t, unsynced.Wait(ctx))
}

func TestWhatKubectlNotesOfAManifestIsDropped(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "a": "b"}}}
	WithoutApplied(n)
	require.Equal(t, map[string]string{"a": "b"}, n.Annotations)
	delete(n.Annotations, "a")
	n.Annotations[corev1.LastAppliedConfigAnnotation] = "{}"
	WithoutApplied(n)
	require.NotNil(t, n.Annotations, "a patch adds to it by the name of one annotation")
	WithoutApplied(&corev1.Node{})
}

func TestAWatchQueuesTheKeysOfAnObjectBeforeAndAfterAChange(t *testing.T) {
	owned := func(by string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", OwnerReferences: []metav1.OwnerReference{
			{Kind: "VirtualMachineInstance", Name: by, Controller: new(true)},
		}}}
	}
	kube := fake.NewClientset()
	pods := kube.CoreV1().Pods("ns")
	var mu sync.Mutex
	var queued []string
	l := New(Config{Name: "test", Workers: 1, Do: func(_ context.Context, key string) (time.Duration, error) {
		mu.Lock()
		defer mu.Unlock()
		queued = append(queued, key)
		return 0, nil
	}})
	var c Caches
	i := informer.Wrap[*corev1.Pod](coreinformers.NewPodInformer(kube, "", 0, nil))
	require.NoError(t, Cache(&c, i, Cached[*corev1.Pod]{}))
	require.NoError(t, Watch(i, l, OwnedBy[*corev1.Pod]("VirtualMachineInstance"), func(a, b *corev1.Pod) bool { return b.Labels["quiet"] == "" }))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { c.Run(ctx) })
	wg.Go(func() { l.Run(ctx) })
	defer wg.Wait()
	defer cancel()
	require.True(t, c.Wait(ctx))
	expect := func(want ...string) {
		t.Helper()
		require.Eventually(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Equal(want, queued)
		}, time.Minute, time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		queued = nil
	}
	_, err := pods.Create(ctx, owned("a"), metav1.CreateOptions{})
	require.NoError(t, err)
	expect("ns/a")
	quiet := owned("a")
	quiet.Labels = map[string]string{"quiet": "yes"}
	_, err = pods.Update(ctx, quiet, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = pods.Update(ctx, owned("b"), metav1.UpdateOptions{})
	require.NoError(t, err)
	expect("ns/b", "ns/a")
	require.NoError(t, pods.Delete(ctx, "p", metav1.DeleteOptions{}))
	expect("ns/b")
}
