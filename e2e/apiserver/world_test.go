package apiserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/podvisor/podvisor/e2e/cluster"
	"github.com/podvisor/podvisor/e2e/cluster/plan"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/scheduler/controller"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// clusterName is the cluster of these tests, beside the one that CLUSTER names when another
// checkout runs them at the same time.
var clusterName = cmp.Or(os.Getenv("CLUSTER"), "test") + "-apiserver"

// timeout limits each wait of a test.
const timeout = 2 * time.Minute

// world is the API server that all tests share.
var world struct {
	// manifests is the folder that was applied.
	manifests string

	config *rest.Config
	kube   kubernetes.Interface
	vmis   *client.Client
	err    error
}

func TestMain(m *testing.M) {
	if os.Geteuid() != 0 {
		os.Exit(m.Run())
	}
	ctx := context.Background()
	c, err := cluster.Up(ctx, cluster.Config{Name: clusterName, Extent: plan.APIServer, Out: os.Stdout})
	if err == nil {
		err = setUp(ctx, c)
	}
	world.err = err
	code := m.Run()
	_ = os.RemoveAll(world.manifests)
	if err := theVerbs.v.down(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "remove the API server of the verbs:", err)
		code = max(code, 1)
	}
	if c != nil {
		if err := c.Down(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "remove the cluster:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// setUp applies the manifests, as a user does.
func setUp(ctx context.Context, c *cluster.Cluster) error {
	var err error
	if world.config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig); err != nil {
		return err
	}
	world.config.QPS, world.config.Burst = 500, 1000
	if world.kube, err = kubernetes.NewForConfig(world.config); err != nil {
		return err
	}
	if world.vmis, err = client.New(world.config); err != nil {
		return err
	}
	if world.manifests, err = os.MkdirTemp("", "manifests"); err != nil {
		return err
	}
	if err := overlay(world.manifests, longTimeout("owned.virt-controller.kubevirt.io")); err != nil {
		return err
	}
	apply := exec.CommandContext(ctx, c.Kubectl, "--kubeconfig", c.Kubeconfig, "apply", "--server-side", "-k", world.manifests)
	if out, err := apply.CombinedOutput(); err != nil {
		return fmt.Errorf("apply the manifests: %w: %s", err, out)
	}
	return errors.Join(settled(ctx), makeNode(ctx, world.kube), answerOwned(ctx, world.config, clusterName, home), keepOnce(ctx))
}

// overlay makes the folder an overlay of the manifests with these lines.
func overlay(dir, lines string) error {
	manifests, err := filepath.Abs("../../manifests")
	if err != nil {
		return err
	}
	base, err := filepath.Rel(dir, manifests)
	if err != nil {
		return err
	}
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [" + base + "]\n" + lines
	return os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600)
}

// longTimeout are lines of an overlay that have the API server wait for the answer of a validating
// webhook as long as it can: on a busy host it may take longer than the manifests say.
func longTimeout(webhook string) string {
	return `patches:
- patch: |
    apiVersion: admissionregistration.k8s.io/v1
    kind: ValidatingWebhookConfiguration
    metadata: {name: virt-controller.kubevirt.io}
    webhooks: [{name: ` + webhook + `, timeoutSeconds: 30}]
`
}

// settled waits until the kind is served and the policies are in force, which is
// a moment after they were applied.
func settled(ctx context.Context) error {
	i := world.vmis.VirtualMachineInstances("default")
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	end := time.Now().Add(timeout)
	for {
		v, err := i.Create(ctx, guest("probe"), dryRun)
		labelled := guest("probe")
		labelled.Labels = map[string]string{vmi.CreatedByLabel: "x"}
		_, refusal := i.Create(ctx, labelled, dryRun)
		if err == nil && slices.Contains(v.Finalizers, vmi.Finalizer) && apierrors.IsInvalid(refusal) {
			return nil
		}
		if time.Now().After(end) {
			return errors.Join(fmt.Errorf("wait for the kind and its policies: %v", v), refusal, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// space is a namespace of one test.
type space struct {
	t    *testing.T
	name string
	vmis client.VirtualMachineInstances
	pods typedcorev1.PodInterface
	// writes are the writes of the test's controllers.
	writes *writes
}

// newSpace makes a namespace in which pods must be restricted and may be made.
func newSpace(t *testing.T) space {
	t.Helper()
	s := bareSpace(t)
	s.allowPods()
	return s
}

// bareSpace makes a namespace without the service account that pods need.
func bareSpace(t *testing.T) space {
	t.Helper()
	testenv.Root(t)
	require.NoError(t, world.err)
	ns, err := world.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "t-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return space{t: t, name: ns.Name, vmis: world.vmis.VirtualMachineInstances(ns.Name), pods: world.kube.CoreV1().Pods(ns.Name), writes: &writes{}}
}

func (s space) allowPods() {
	s.t.Helper()
	_, err := world.kube.CoreV1().ServiceAccounts(s.name).Create(s.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	require.NoError(s.t, err)
}

// asController is the configuration of a client that is virt-controller.
func asController() *rest.Config {
	cfg := rest.CopyConfig(world.config)
	cfg.Impersonate.UserName = "system:serviceaccount:kubevirt:virt-controller"
	return cfg
}

// control runs a controller for the namespace until the test ends or stop is
// called.
func (s space) control(change ...func(*controller.Config)) (stop func()) {
	s.t.Helper()
	cfg := asController()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next, s.writes} })
	vmis, err := client.New(cfg)
	require.NoError(s.t, err)
	kube, err := kubernetes.NewForConfig(cfg)
	require.NoError(s.t, err)
	config := controller.Config{Client: vmis, Kube: kube, Home: home, Namespace: s.name, Launcher: pod.Launcher{Image: "podvisor/virt-launcher:v1", AllowEmulation: true}}
	for _, f := range change {
		f(&config)
	}
	if config.Settings != nil {
		config.Launcher.Build = followed
	}
	c, err := controller.New(config)
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = c.Run(ctx) })
	stop = func() { cancel(); wg.Wait() }
	s.t.Cleanup(stop)
	return stop
}

// writes are requests that change something, as "PATCH
// virtualmachineinstances/x/status 200".
type writes struct {
	// open is held for reading by every write until it is in the list: what a
	// write did can be seen before its answer is.
	open sync.RWMutex
	mu   sync.Mutex // protects list
	list []write
}

type write struct {
	text  string
	begun time.Time
}

// all are the writes that were begun, but for events, in the order of their
// answers.
func (w *writes) all() []string { return texts(w.from(0)) }

// from are those from the place on.
func (w *writes) from(i int) []write {
	w.open.Lock()
	defer w.open.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.list[i:])
}

// writesMore waits until there is a write at the place.
func (s space) writesMore(place int) {
	s.t.Helper()
	eventually(s.t, func() error {
		if len(s.writes.from(0)) <= place {
			return errors.New("nothing more was written")
		}
		return nil
	})
}

func texts(all []write) []string {
	s := make([]string, 0, len(all))
	for _, w := range all {
		s = append(s, w.text)
	}
	return s
}

// quick are the writes without those of the status that say that a guest of this age still
// starts, as it does on a busy host: the controller makes none in the first two seconds. The
// last one before the end, or of all, says that it runs.
func quick(all []write, status string, created time.Time, end string) []write {
	texts := texts(all)
	until := slices.Index(texts, end)
	if until < 0 {
		until = len(all)
	}
	var kept []write
	for i, w := range all {
		starting := i < until && w.text == status && slices.Contains(texts[i+1:until], status)
		if !starting || w.begun.Before(created.Add(2*time.Second)) {
			kept = append(kept, w)
		}
	}
	return kept
}

type counter struct {
	next http.RoundTripper
	to   *writes
}

func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return c.next.RoundTrip(r)
	}
	c.to.open.RLock()
	defer c.to.open.RUnlock()
	begun := time.Now()
	resp, err := c.next.RoundTrip(r)
	if err == nil {
		_, what, _ := strings.Cut(r.URL.Path, "/namespaces/")
		_, what, _ = strings.Cut(what, "/")
		if name, is := strings.CutSuffix(what, "/status"); is && strings.HasPrefix(name, "pods/") {
			what = "pods/status"
		}
		if !strings.HasPrefix(what, "events") {
			c.to.mu.Lock()
			c.to.list = append(c.to.list, write{fmt.Sprintf("%s %s %d", r.Method, what, resp.StatusCode), begun})
			c.to.mu.Unlock()
		}
	}
	return resp, err
}

// asHandler is the configuration of a client that is the handler of the node.
func asHandler(node string) *rest.Config {
	cfg := rest.CopyConfig(world.config)
	cfg.Impersonate.UserName = "system:serviceaccount:kubevirt:virt-handler"
	if node != "" {
		cfg.Impersonate.Extra = map[string][]string{"authentication.kubernetes.io/node-name": {node}}
	}
	return cfg
}

// eventually waits until the function returns nil.
func eventually(t *testing.T, f func() error) {
	t.Helper()
	began := time.Now()
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Since(began) > timeout {
			require.NoError(t, err)
		}
		time.Sleep(testenv.Pause(began, 20*time.Millisecond))
	}
}

// await waits until ok is true for the VMI and returns it.
func (s space) await(name string, ok func(*vmi.VirtualMachineInstance) bool) *vmi.VirtualMachineInstance {
	s.t.Helper()
	var v *vmi.VirtualMachineInstance
	eventually(s.t, func() error {
		var err error
		if v, err = s.vmis.Get(s.t.Context(), name, metav1.GetOptions{}); err == nil && !ok(v) {
			err = fmt.Errorf("the status of the VMI is not the expected one: %+v", v.Status)
		}
		return err
	})
	return v
}

func (s space) awaitPhase(name string, p vmi.Phase) *vmi.VirtualMachineInstance {
	s.t.Helper()
	return s.await(name, func(v *vmi.VirtualMachineInstance) bool { return v.Status.Phase == p })
}

func (s space) awaitReason(name string, t vmi.ConditionType, reason string) vmi.Condition {
	s.t.Helper()
	v := s.await(name, func(v *vmi.VirtualMachineInstance) bool {
		c := v.Status.Condition(t)
		return c != nil && c.Status == corev1.ConditionFalse && c.Reason == reason
	})
	return *v.Status.Condition(t)
}

func (s space) awaitGone(name string) {
	s.t.Helper()
	eventually(s.t, func() error {
		_, err := s.vmis.Get(s.t.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%s is still there: %w", name, err)
	})
}

// asController is a client of the API server that is virt-controller.
func (s space) asController() typedcorev1.CoreV1Interface {
	s.t.Helper()
	kube, err := kubernetes.NewForConfig(asController())
	require.NoError(s.t, err)
	return kube.CoreV1()
}
