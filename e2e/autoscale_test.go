package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/e2e/cluster/plan"
	"github.com/podvisor/podvisor/vmi"
)

// podMetrics serves the API metrics.k8s.io: each pod that is asked for uses the same
// processor time.
type podMetrics struct {
	space
	milli atomic.Int64
}

func (m *podMetrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	const version = "metrics.k8s.io/v1beta1"
	if !strings.HasSuffix(r.URL.Path, "/pods") {
		_ = json.NewEncoder(w).Encode(metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: version,
			APIResources: []metav1.APIResource{{Name: "pods", Namespaced: true, Kind: "PodMetrics", Verbs: metav1.Verbs{"get", "list"}}},
		})
		return
	}
	pods, err := world.kube.CoreV1().Pods(m.name).List(r.Context(), metav1.ListOptions{LabelSelector: r.URL.Query().Get("labelSelector")})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	items := []any{}
	for _, p := range pods.Items {
		items = append(items, map[string]any{
			"metadata": map[string]any{"name": p.Name, "namespace": p.Namespace}, "timestamp": metav1.Now(), "window": "1s",
			"containers": []any{map[string]any{"name": vmi.ComputeContainer, "usage": map[string]any{"cpu": fmt.Sprintf("%dm", m.milli.Load())}}},
		})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": version, "kind": "PodMetricsList", "metadata": map[string]any{}, "items": items})
}

// serveMetrics makes the API server of the cluster serve the metrics until the test
// ends.
func (s space) serveMetrics() *podMetrics {
	s.t.Helper()
	m := &podMetrics{space: s}
	server := httptest.NewUnstartedServer(m)
	server.Listener = listenAtControlPlane(s.t)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	s.t.Cleanup(server.Close)
	_, err := world.kube.CoreV1().Services(s.name).Create(s.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "metrics"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443}}},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	_, err = world.kube.DiscoveryV1().EndpointSlices(s.name).Create(s.t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "metrics", Labels: map[string]string{discoveryv1.LabelServiceName: "metrics"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{plan.ControlPlane.Addr().String()}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(server.Listener.Addr().(*net.TCPAddr).Port))}},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	const name = "v1beta1.metrics.k8s.io"
	_, err = world.kubectl.RunInput(s.t.Context(), strings.NewReader(fmt.Sprintf(`
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: %s}
spec:
  group: metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {namespace: %s, name: metrics}
`, name, s.name)), "apply", "-f", "-")
	require.NoError(s.t, err)
	// A group that is registered and not served would hold up the deletion of every namespace.
	s.t.Cleanup(func() {
		_, err := world.kubectl.Run(context.Background(), "delete", "apiservice", name)
		require.NoError(s.t, err)
	})
	s.kubectl("wait", "apiservice/"+name, "--for=condition=Available", "--timeout=300s")
	return m
}

// atControlPlane calls f where the API server is, which has a network namespace of its own.
func atControlPlane[T any](f func() (T, error)) (out T, err error) {
	pid, err := world.cluster.Node("cp").PID()
	if err != nil {
		return out, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread stays in the namespace, and ends with this function
		var ns *os.File
		if ns, err = os.Open(fmt.Sprintf("/proc/%d/ns/net", pid)); err != nil {
			return
		}
		if err = errors.Join(unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET), ns.Close()); err == nil {
			out, err = f()
		}
	}()
	<-done
	return out, err
}

// listenAtControlPlane listens there.
func listenAtControlPlane(t *testing.T) net.Listener {
	t.Helper()
	l, err := atControlPlane(func() (net.Listener, error) {
		return net.Listen("tcp", net.JoinHostPort(plan.ControlPlane.Addr().String(), "0"))
	})
	require.NoError(t, err)
	return l
}

func TestAHorizontalPodAutoscalerScalesASet(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.makeEditor()
	m := s.serveMetrics()
	m.milli.Store(300)
	s.applySet(setOf("scaled", 1))
	s.awaitSet("scaled", 1)
	_, err := world.kube.AutoscalingV2().HorizontalPodAutoscalers(s.name).Create(s.t.Context(), &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "scaled"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachineInstanceReplicaSet", Name: "scaled"},
			MinReplicas:    new(int32(1)), MaxReplicas: 3,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: new(resource.MustParse("100m"))},
			}}},
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: new(int32(0))}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	defer func() {
		if t.Failed() {
			t.Log(s.kubectl("describe", "hpa"))
		}
	}()
	began := time.Now()
	s.awaitSet("scaled", 3)
	t.Logf("scaled to 3 after %s", time.Since(began).Round(time.Second))
	m.milli.Store(10)
	s.awaitSet("scaled", 1)
	s.edit("delete", "vmirs/scaled", "--cascade=foreground", "--timeout=300s")
}
