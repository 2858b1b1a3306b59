package apiserver

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	handler "github.com/podvisor/podvisor/handler/controller"
	"github.com/podvisor/podvisor/internal/handler/socket"
	"github.com/podvisor/podvisor/internal/network/networktest"
	"github.com/podvisor/podvisor/internal/ops"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/scheduler/controller"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// requests counts those that a component sends, but for watches.
type requests struct {
	next http.RoundTripper
	to   *sent
}

// sent are the requests of components.
type sent struct {
	count, bytes atomic.Int64
	mu           sync.Mutex
	what         map[string]int // by method, resource and subresource
}

// since forgets what was sent before.
func (s *sent) since() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.what = map[string]int{}
}

func (s *sent) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprint(s.what)
}

func (c requests) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") == "" {
		c.to.count.Add(1)
		c.to.bytes.Add(max(r.ContentLength, 0))
		p := strings.Split(r.URL.Path, "/namespaces/")
		what := strings.Split(p[len(p)-1], "/")
		key := r.Method + " " + r.Header.Get("User-Agent")
		if len(what) > 1 {
			key += " " + what[1]
		}
		if len(what) > 3 {
			key += "/" + what[3]
		}
		c.to.mu.Lock()
		c.to.what[key]++
		c.to.mu.Unlock()
	}
	return c.next.RoundTrip(r)
}

// lines counts those of a log.
type lines struct{ count, bytes atomic.Int64 }

func (l *lines) Write(b []byte) (int, error) {
	l.count.Add(1)
	l.bytes.Add(int64(len(b)))
	return len(b), nil
}

// attackedNode is a node with a real handler, whose launchers are processes.
type attackedNode struct {
	t    *testing.T
	name string
	// pods is the kubelet's folder of pods.
	pods string
	sent sent
	log  lines
}

func newAttackedNode(t *testing.T) *attackedNode {
	t.Helper()
	n := &attackedNode{t: t, name: newSpace(t).name}
	n.sent.since()
	var err error
	n.pods, err = os.MkdirTemp("", "pods")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(n.pods) })
	require.NoError(t, os.Chmod(n.pods, 0o755))
	nodes, agents := world.kube.CoreV1().Nodes(), world.kube.CoreV1().Pods(home)
	node, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	_, err = nodes.UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err)
	agent, err := agents.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "virt-handler-" + n.name, Labels: map[string]string{vmi.AppLabel: "virt-handler"}},
		Spec: corev1.PodSpec{NodeName: n.name, ServiceAccountName: "virt-handler", AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{{Name: "virt-handler", Image: "example/virt-handler:v1"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = agents.Delete(context.Background(), agent.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
		_ = nodes.Delete(context.Background(), n.name, metav1.DeleteOptions{})
	})
	agent.Status.Phase = corev1.PodRunning
	agent.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	_, err = agents.UpdateStatus(t.Context(), agent, metav1.UpdateOptions{})
	require.NoError(t, err)
	return n
}

// count makes the requests of a configuration be counted and limited, as a
// component's are.
func (n *attackedNode) count(cfg *rest.Config) *rest.Config {
	cfg.RateLimiter = ops.NewLimiter()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return requests{next, &n.sent} })
	return cfg
}

// handle runs the handler until the test ends.
func (n *attackedNode) handle() {
	n.t.Helper()
	cfg := n.count(asHandler(n.name))
	cfg.UserAgent = "virt-handler"
	vmis, err := client.New(cfg)
	require.NoError(n.t, err)
	events, err := typedcorev1.NewForConfig(cfg)
	require.NoError(n.t, err)
	dial, err := socket.Open(n.pods)
	require.NoError(n.t, err)
	h, err := handler.New(handler.Config{Node: n.name, Client: vmis, Events: events, Dial: dial.Dial, Logger: slog.New(slog.NewTextHandler(&n.log, nil))})
	require.NoError(n.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = h.Run(ctx) })
	n.t.Cleanup(func() {
		cancel()
		wg.Wait()
		_ = dial.Close()
	})
	require.Eventually(n.t, func() bool { return h.Ready() == nil }, timeout, 10*time.Millisecond)
}

// place has a VMI of the namespace placed on the node, in a pod whose launcher is of
// the kind.
func (n *attackedNode) place(s space, l *launchers, name, kind string) {
	n.t.Helper()
	v := s.create(guest(name))
	p := s.pod(v)
	l.add(launcher{Kind: kind, Dir: sockets(n.t, n.pods, p.UID), Namespace: s.name, Name: name, UID: v.UID})
	s.bind(p, n.name)
	s.status(p, running)
}

// starts is how long the VMIs of the namespace take from their creation until they
// run, each after the other: the median.
func (n *attackedNode) starts(s space, l *launchers, names ...string) time.Duration {
	n.t.Helper()
	var all []time.Duration
	for _, name := range names {
		began := time.Now()
		n.place(s, l, name, "")
		s.awaitPhase(name, vmi.PhaseRunning)
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	n.t.Logf("from creation to Running: %s", all)
	return all[len(all)/2]
}

// peak is the highest use of memory until it is stopped.
func peak() (stop func() uint64) {
	end, most := make(chan struct{}), make(chan uint64)
	go func() {
		top := uint64(0)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			top = max(top, m.HeapInuse+m.StackInuse)
			select {
			case <-end:
				most <- top
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return func() uint64 {
		close(end)
		return <-most
	}
}

// 64 launchers of one tenant, of every kind, are on a node with the VMI of another
// tenant.
func TestAttackByLaunchersOfOneTenant(t *testing.T) {
	const hostile, each = 64, 5
	n := newAttackedNode(t)
	tenant, other := newSpace(t), newSpace(t)
	var theirs, honest []*os.File
	for range hostile / 2 {
		pod, _ := networktest.Pod(t)
		theirs = append(theirs, pod)
	}
	for range 2 * each {
		pod, _ := networktest.Pod(t)
		honest = append(honest, pod)
	}
	bad, good := startLaunchers(t, theirs...), startLaunchers(t, honest...)
	for _, s := range []space{tenant, other} {
		s.control(n.asComponent)
	}
	n.handle()
	names := func(prefix string) (all []string) {
		for i := range each {
			all = append(all, fmt.Sprintf("%s%d", prefix, i))
		}
		return all
	}
	usual := n.starts(other, good, names("usual")...)

	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	highest := peak()
	kind := slices.Sorted(func(yield func(string) bool) {
		for k := range hostileKinds {
			if !yield(k) {
				return
			}
		}
	})
	began := n.sent.count.Load()
	for i := range hostile {
		n.place(tenant, bad, fmt.Sprintf("hostile%d", i), kind[i%len(kind)])
	}
	eventually(t, func() error {
		l, err := tenant.vmis.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, v := range l.Items {
			if v.Status.Phase != vmi.PhaseScheduled && v.Status.Phase != vmi.PhaseRunning {
				return fmt.Errorf("%s is %s", v.Name, v.Status.Phase)
			}
		}
		return nil
	})
	attacked := n.starts(other, good, names("attacked")...)
	// Each launcher has spent what it may send at once, and then sends little, when it has
	// what one report costs: some of them in one second, and none in the next ones.
	window, rate := 10*time.Second, 0.0
	var burst, bytes, logged int64
	measure := func() {
		sent := n.sent.count.Load()
		burst, bytes, logged = sent-began, n.sent.bytes.Load(), n.log.count.Load()
		n.sent.since()
		time.Sleep(window)
		rate = float64(n.sent.count.Load()-sent) / window.Seconds()
	}
	measure()
	for end := time.Now().Add(timeout); rate > 1 && time.Now().Before(end); {
		measure()
	}
	if testenv.Long() {
		window = 10 * time.Minute
		measure()
	}
	memory := int64(highest()) - int64(before.HeapInuse+before.StackInuse)
	t.Logf("usual start %s, attacked %s (%.2f times)", usual, attacked, float64(attacked)/float64(usual))
	t.Logf("requests of the components: %d until the budgets were spent, then %.2f/s with %d bytes/s; %.2f log lines/s, %d bytes in all",
		burst, rate, int64(float64(n.sent.bytes.Load()-bytes)/window.Seconds()), float64(n.log.count.Load()-logged)/window.Seconds(), n.log.bytes.Load())
	t.Logf("in that time: %s", &n.sent)
	t.Logf("memory grew by %d KiB at most; goroutines: %d", memory>>10, runtime.NumGoroutine())
	most := 10*usual + time.Minute // of a host that has other work at times
	if testenv.Long() {
		most = 3*usual + time.Second
	}
	require.Less(t, attacked, most)
	require.LessOrEqual(t, rate, 1.0)
	require.Less(t, memory, int64(160<<20))
}

// asComponent counts the requests of virt-controller too.
func (n *attackedNode) asComponent(c *controller.Config) {
	cfg := n.count(asController())
	cfg.UserAgent = "virt-controller"
	vmis, err := client.New(cfg)
	require.NoError(n.t, err)
	c.Client = vmis
	c.Launcher = pod.Launcher{Image: "podvisor/virt-launcher:v1", AllowEmulation: true}
}
