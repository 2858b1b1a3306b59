package apiserver

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/podvisor/podvisor/e2e/cluster/plan"
	"github.com/podvisor/podvisor/e2e/monitoring"
	"github.com/podvisor/podvisor/e2e/toolchain"
	"github.com/podvisor/podvisor/handler/scrape"
	"github.com/podvisor/podvisor/internal/ops"
	"github.com/podvisor/podvisor/internal/review"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// manyVMIs are created and deleted under the eyes of Prometheus.
var manyVMIs = flag.Int("vmis", 20, "how many VMIs are created and deleted while Prometheus reads the metrics")

// counted are the VMIs of a handler whose launchers answer with statistics, or hang.
type counted struct {
	mu   sync.Mutex
	all  []*vmi.VirtualMachineInstance
	hang bool
}

func (c *counted) set(hang bool, namespace string, names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all, c.hang = nil, hang
	for _, name := range names {
		v := vmitest.New(vmitest.WithName(name))
		v.Namespace, v.UID, v.Status.NodeName = namespace, types.UID("uid-"+name), verbNode
		c.all = append(c.all, v)
	}
}

func (c *counted) Instances() []*vmi.VirtualMachineInstance {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.all)
}

func (c *counted) Stats(ctx context.Context, _ protocol.Target) (protocol.Stats, error) {
	c.mu.Lock()
	hang := c.hang
	c.mu.Unlock()
	if hang {
		<-ctx.Done()
		return protocol.Stats{}, ctx.Err()
	}
	return protocol.NewStats(map[string]any{"vcpu.0.time": uint64(2e9), "vcpu.0.state": int32(1)}), nil
}

// serveHandler serves the metrics of VMIs at the port, as virt-handler does with the rights of
// its account.
func (v *verbs) serveHandler(t *testing.T, port int, guests scrape.Guests) {
	t.Helper()
	_, cfg, err := v.component(t.Context(), "virt-handler")
	require.NoError(t, err)
	kube, err := kubernetes.NewForConfig(cfg)
	require.NoError(t, err)
	registry := ops.Registry()
	registry.MustRegister(scrape.New(scrape.Config{Guests: guests, PerVMI: 200 * time.Millisecond, Fresh: time.Nanosecond}))
	guard := review.NewGuard(review.GuardConfig{Tokens: kube.AuthenticationV1().TokenReviews(), Access: kube.AuthorizationV1().SubjectAccessReviews(), Path: "/metrics"})
	e := ops.Endpoint{Addr: fmt.Sprintf("%s:%d", plan.ControlPlane.Addr(), port), Metrics: registry, Guard: guard.Protect}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- v.beside(func() error { return ops.Serve(ctx, e) }) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
}

// series are the names and labels of all series of virt-controller, but for those that count
// requests by the code of their answer, and the times by the phase that a VMI came into: there
// are as many as codes and phases.
func (v *verbs) series(t *testing.T, token string) (out []string) {
	t.Helper()
	code, text, err := v.scrape(t.Context(), 8443, "/metrics", token)
	require.NoError(t, err)
	require.Equal(t, 200, code, text)
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "kubevirt_rest_client_requests_total{") && !strings.HasPrefix(line, "kubevirt_vmi_phase_transition_time_") {
			out = append(out, line[:strings.LastIndex(line, " ")])
		}
	}
	return out
}

// awaitQuery waits until an expression has these values, by their labels.
func awaitQuery(t *testing.T, p *monitoring.Server, expr string, want map[string]string) {
	t.Helper()
	eventually(t, func() error {
		got, err := p.Query(t.Context(), expr)
		if err == nil && fmt.Sprint(got) != fmt.Sprint(want) {
			err = fmt.Errorf("%s: %v, not %v", expr, got, want)
		}
		return err
	})
}

// A real Prometheus reads virt-controller, and the metrics of a handler, with the token of
// manifests/monitoring, and evaluates the rules there.
func TestAPrometheusReadsTheMetricsAndRaisesAlerts(t *testing.T) {
	testenv.Root(t)
	program, err := toolchain.Prometheus(t.Context(), toolchain.Config{Out: os.Stderr})
	require.NoError(t, err)
	var v verbs
	t.Cleanup(func() { require.NoError(t, v.down(context.Background())) })
	require.NoError(t, v.install(t.Context(), clusterName+"-metrics"))
	require.NoError(t, makeNode(t.Context(), v.kube))
	require.NoError(t, v.certify(t.Context()))
	require.NoError(t, v.start(t.Context(), 8443))
	token := v.monitor(t)
	var guests counted
	v.serveHandler(t, 8453, &guests)
	rules, err := monitoring.ReadRules("../..")
	require.NoError(t, err)
	at := func(port int) string { return fmt.Sprintf("%s:%d", plan.ControlPlane.Addr(), port) }
	p, err := monitoring.Start(t.Context(), monitoring.Config{
		Program: program, Dir: t.TempDir(), Listen: at(9090), Interval: 500 * time.Millisecond, Token: token,
		Rules:   regexp.MustCompile(`(?m)^ +for: .*\n`).ReplaceAll(rules, nil), // at once
		Targets: []monitoring.Target{{Address: at(8443), Pod: "virt-controller-1"}, {Address: at(8453), Pod: "virt-handler-1"}},
		Run:     func(c *exec.Cmd) error { return v.beside(c.Start) }, Client: v.at(9090, nil),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Stop()) })
	const firing = `group by (alertname, namespace, name, vm) (ALERTS{alertstate="firing"})`
	none := map[string]string{}

	awaitQuery(t, p, "cluster:kubevirt_virt_controller_up:sum + cluster:kubevirt_virt_handler_up:sum + cluster:kubevirt_virt_controller_leading:sum", map[string]string{"{}": "3"})
	awaitQuery(t, p, firing, none)

	ns, err := v.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "watched"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = v.kube.CoreV1().ServiceAccounts(ns.Name).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	vmis := v.vmis.VirtualMachineInstances(ns.Name)
	create := func(n int) (names []string) {
		for i := range n {
			names = append(names, fmt.Sprintf("many-%d", i))
			_, err := vmis.Create(t.Context(), guest(names[i]), metav1.CreateOptions{})
			require.NoError(t, err)
		}
		guests.set(false, ns.Name, names...)
		awaitQuery(t, p, `count(kubevirt_vmi_info{namespace="watched",pod="virt-controller-1"})`, map[string]string{"{}": fmt.Sprint(n)})
		awaitQuery(t, p, `count(kubevirt_vmi_vcpu_seconds_total{namespace="watched",pod="virt-handler-1"})`, map[string]string{"{}": fmt.Sprint(n)})
		awaitQuery(t, p, `sum(kubevirt_vmi_phase_count)`, map[string]string{"{}": fmt.Sprint(n)})
		return names
	}
	remove := func(names []string) {
		guests.set(false, ns.Name)
		for _, name := range names {
			require.NoError(t, vmis.Delete(t.Context(), name, metav1.DeleteOptions{}))
		}
		eventually(t, func() error {
			l, err := vmis.List(t.Context(), metav1.ListOptions{})
			if err == nil && len(l.Items) > 0 {
				err = fmt.Errorf("%d VMIs are left", len(l.Items))
			}
			return err
		})
		awaitQuery(t, p, `count({namespace="watched"})`, none)
	}
	remove(create(1)) // the first one adds what is counted of all
	before := v.series(t, token)
	remove(create(*manyVMIs))
	eventually(t, func() error {
		now := v.series(t, token)
		if more := slices.DeleteFunc(now, func(s string) bool { return slices.Contains(before, s) }); len(more) > 0 {
			return fmt.Errorf("series that were not there before: %v", more)
		}
		return nil
	})
	t.Logf("virt-controller has %d series before and after %d VMIs", len(before), *manyVMIs)
	awaitQuery(t, p, firing, none)

	guests.set(true, ns.Name, "hangs")
	awaitQuery(t, p, firing, map[string]string{`{"alertname":"PodvisorVMIStatsFailed","name":"hangs","namespace":"watched","vm":"hangs"}`: "1"})
	awaitQuery(t, p, `up{pod="virt-handler-1"}`, map[string]string{`{"__name__":"up","endpoint":"metrics","instance":"` + at(8453) + `","job":"kubevirt-prometheus-metrics","namespace":"kubevirt","pod":"virt-handler-1"}`: "1"})
	guests.set(false, ns.Name)
	awaitQuery(t, p, firing, none)

	v.kill(8443)
	awaitQuery(t, p, firing, map[string]string{
		`{"alertname":"NoLeadingVirtController","namespace":"kubevirt"}`: "1", `{"alertname":"VirtControllerDown","namespace":"kubevirt"}`: "1",
	})
	require.NoError(t, v.start(t.Context(), 8443))
	awaitQuery(t, p, firing, none)
}
