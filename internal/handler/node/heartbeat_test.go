package node

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/podvisor/podvisor/vmi"
)

func cluster() *fake.Clientset {
	return fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"zone": "a"}}})
}

func node(t *testing.T, c *fake.Clientset) *corev1.Node {
	n, err := c.CoreV1().Nodes().Get(context.Background(), "n1", metav1.GetOptions{})
	require.NoError(t, err)
	return n
}

// patches is how often the node was written.
func patches(c *fake.Clientset) int {
	n := 0
	for _, a := range c.Actions() {
		if a.GetVerb() == "patch" {
			n++
		}
	}
	return n
}

func run(t *testing.T, c Config) (h *Heartbeat, stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	h = New(c)
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	return h, func() {
		cancel()
		require.NoError(t, <-done)
	}
}

func eventually(t *testing.T, f func() bool) {
	t.Helper()
	require.Eventually(t, f, time.Minute, time.Millisecond)
}

func TestANodeIsSchedulableWhileSchedulableSaysSo(t *testing.T) {
	t.Parallel()
	c := cluster()
	var ready atomic.Bool
	h, stop := run(t, Config{Nodes: c.CoreV1().Nodes(), Name: "n1", Schedulable: ready.Load, StartDelay: time.Millisecond})
	eventually(t, func() bool { return node(t, c).Labels[vmi.SchedulableLabel] == "false" })

	ready.Store(true)
	h.Changed()
	eventually(t, func() bool { return node(t, c).Labels[vmi.SchedulableLabel] == "true" })
	beat, err := time.Parse(time.RFC3339, node(t, c).Annotations[vmi.HeartbeatAnnotation])
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), beat, time.Minute)
	require.Equal(t, "a", node(t, c).Labels["zone"])
	require.Equal(t, 2, patches(c))

	stop()
	require.Equal(t, "false", node(t, c).Labels[vmi.SchedulableLabel])
	require.Equal(t, 3, patches(c))
}

func TestANodeThatIsSchedulableWithinTheStartDelayIsWrittenOnce(t *testing.T) {
	t.Parallel()
	c := cluster()
	var ready atomic.Bool
	h, stop := run(t, Config{Nodes: c.CoreV1().Nodes(), Name: "n1", Schedulable: ready.Load, StartDelay: time.Hour})
	ready.Store(true)
	h.Changed()
	eventually(t, func() bool { return node(t, c).Labels[vmi.SchedulableLabel] == "true" })
	require.Equal(t, 1, patches(c))
	stop()
}

func TestAChangeWithoutANewResultIsNotWritten(t *testing.T) {
	t.Parallel()
	c := cluster()
	h, stop := run(t, Config{Nodes: c.CoreV1().Nodes(), Name: "n1", Schedulable: func() bool { return true }})
	eventually(t, func() bool { return patches(c) == 1 })
	for range 10 {
		h.Changed()
	}
	stop()
	require.Equal(t, 2, patches(c))
}

func TestTheAnnotationIsWrittenEachPeriod(t *testing.T) {
	t.Parallel()
	c := cluster()
	_, stop := run(t, Config{Nodes: c.CoreV1().Nodes(), Name: "n1", Schedulable: func() bool { return true }, Period: time.Millisecond})
	eventually(t, func() bool { return patches(c) > 5 })
	stop()
}

func TestAPatchThatFailsIsRetried(t *testing.T) {
	t.Parallel()
	c := cluster()
	var failed atomic.Bool
	c.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		if failed.CompareAndSwap(false, true) {
			return true, nil, errors.New("connection refused")
		}
		return false, nil, nil
	})
	_, stop := run(t, Config{Nodes: c.CoreV1().Nodes(), Name: "n1", Schedulable: func() bool { return true }})
	eventually(t, func() bool { return node(t, c).Labels[vmi.SchedulableLabel] == "true" })
	stop()
}

// requireUnmarked checks that nothing of Podvisor is on the node, and all else is.
func requireUnmarked(t *testing.T, c *fake.Clientset) {
	t.Helper()
	n := node(t, c)
	require.Equal(t, map[string]string{"zone": "a"}, n.Labels)
	require.Empty(t, n.Annotations)
}

func TestAnEmptyAnnotationIsRemoved(t *testing.T) {
	t.Parallel()
	c := cluster()
	_, err := c.CoreV1().Nodes().Patch(t.Context(), "n1", types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"1","b":"2","c":"3"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	_, stop := run(t, Config{Nodes: c.CoreV1().Nodes(), Name: "n1", Schedulable: func() bool { return true }, Annotations: map[string]string{"a": "", "b": "4"}})
	eventually(t, func() bool {
		has := node(t, c).Annotations
		_, a := has["a"]
		return !a && has["b"] == "4" && has["c"] == "3"
	})
	stop()
}

func TestAnUninstallRemovesTheLabelAndTheAnnotation(t *testing.T) {
	t.Parallel()
	c := cluster()
	_, stop := run(t, Config{Nodes: c.CoreV1().Nodes(), Name: "n1", Schedulable: func() bool { return true },
		Uninstalled: func(context.Context) bool { return true }})
	eventually(t, func() bool { return node(t, c).Labels[vmi.SchedulableLabel] == "true" })
	stop()
	requireUnmarked(t, c)
}

// labelPatches is how often labels were written without a sign of life.
func labelPatches(c *fake.Clientset) int {
	n := 0
	for _, a := range c.Actions() {
		if p, ok := a.(clienttesting.PatchAction); ok && !bytes.Contains(p.GetPatch(), []byte(vmi.SchedulableLabel)) {
			n++
		}
	}
	return n
}

// labelled is a heartbeat that keeps labels of the prefix x/.
func labelled(c *fake.Clientset, labels func() map[string]string) Config {
	return Config{
		Nodes: c.CoreV1().Nodes(), Name: "n1", Schedulable: func() bool { return true }, Period: time.Millisecond,
		Labels: labels, Owned: func(k string) bool { return strings.HasPrefix(k, "x/") },
	}
}

func TestTheLabelsOfANodeAreWrittenWhenTheyChange(t *testing.T) {
	t.Parallel()
	c := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"zone": "a", "x/old": "true"}}})
	var now atomic.Pointer[map[string]string]
	now.Store(&map[string]string{"x/a": "true", "x/b": "true"})
	h, stop := run(t, labelled(c, func() map[string]string { return *now.Load() }))
	has := func(want map[string]string) func() bool {
		return func() bool {
			got := maps.Clone(node(t, c).Labels)
			delete(got, vmi.SchedulableLabel)
			return maps.Equal(want, got)
		}
	}
	eventually(t, has(map[string]string{"zone": "a", "x/a": "true", "x/b": "true"}))
	before := labelPatches(c)
	beats := patches(c)
	eventually(t, func() bool { return patches(c) > beats+5 })
	require.Equal(t, before, labelPatches(c), "nothing is written that is there")

	now.Store(&map[string]string{"x/b": "true"})
	h.Changed()
	eventually(t, has(map[string]string{"zone": "a", "x/b": "true"}))

	now.Store(new(map[string]string))
	h.Changed()
	beats = patches(c)
	eventually(t, func() bool { return patches(c) > beats+5 })
	require.True(t, has(map[string]string{"zone": "a", "x/b": "true"})(), "what is not known changes nothing")
	stop()
	require.Equal(t, before+1, labelPatches(c))
}

func TestTheLabelsOfANodeStayAsTheyAreIfItsAnnotationSaysSo(t *testing.T) {
	t.Parallel()
	c := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "n1", Labels: map[string]string{"x/old": "true"}, Annotations: map[string]string{vmi.SkipNodeAnnotation: "true"},
	}})
	_, stop := run(t, labelled(c, func() map[string]string { return map[string]string{"x/a": "true"} }))
	eventually(t, func() bool { return patches(c) > 5 })
	stop()
	require.Equal(t, map[string]string{"x/old": "true", vmi.SchedulableLabel: "false"}, node(t, c).Labels)
	require.Zero(t, labelPatches(c))
}

func TestTheLabelsOfANodeAreRemovedWithPodvisor(t *testing.T) {
	t.Parallel()
	c := cluster()
	config := labelled(c, func() map[string]string { return map[string]string{"x/a": "true"} })
	config.Uninstalled = func(context.Context) bool { return true }
	_, stop := run(t, config)
	eventually(t, func() bool { return node(t, c).Labels["x/a"] == "true" })
	stop()
	require.Equal(t, map[string]string{"zone": "a"}, node(t, c).Labels)
}
