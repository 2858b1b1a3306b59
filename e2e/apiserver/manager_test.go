package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/e2e/cluster/plan"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/vmi"
)

// manager is a process of examples/manager beside an API server, in place of virt-controller
// and with the rights of its account. Its ports are three from this one on.
type manager struct {
	v    *verbs
	port int
	cmd  *exec.Cmd
}

// newManager starts the process, and waits until it answers reviews.
func newManager(t *testing.T, v *verbs, port int) *manager {
	t.Helper()
	at := func(n int) string { return fmt.Sprintf("%s:%d", plan.ControlPlane.Addr(), port+n) }
	name := fmt.Sprintf("manager-%d", port)
	cmd, err := v.run(name, []string{"KUBECONFIG=" + filepath.Join(v.folder, "virt-controller.kubeconfig")},
		"-namespace="+home, "-launcher-image=podvisor/virt-launcher:v1", "-webhooks="+at(0), "-metrics="+at(1), "-health="+at(2))
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(v.folder, name+".log"))
			t.Logf("%s: %s", name, log[max(0, len(log)-8<<10):])
		}
	})
	m := &manager{v, port, cmd}
	v.mu.Lock()
	v.replicas[port] = cmd
	v.mu.Unlock()
	eventually(t, func() error {
		_, err := m.get(2, "/readyz")
		return err
	})
	require.NoError(t, v.endpoint(t.Context(), port))
	return m
}

// get is the answer at a path of the port that is the n-th of the process.
func (m *manager) get(n int, path string) (string, error) {
	r, err := m.v.at(m.port+n, nil).Get("http://manager" + path)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Body.Close() }()
	b, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, r.Status, b)
	}
	return string(b), err
}

// leads reports whether the loops run in the process.
func (m *manager) leads() error {
	all, err := m.get(1, "/metrics")
	if err == nil && !strings.Contains(all, "kubevirt_workqueue_adds_total") {
		err = errors.New("its loops do not run")
	}
	return err
}

func TestTheSuccessorOfAnEmbeddersProcessThatIsKilledGoesOn(t *testing.T) {
	testenv.Root(t)
	var v verbs
	t.Cleanup(func() { require.NoError(t, v.down(context.Background())) })
	require.NoError(t, v.install(t.Context(), clusterName+"-manager"))
	require.NoError(t, makeNode(t.Context(), v.kube))
	require.NoError(t, v.certify(t.Context()))
	v.program = filepath.Join(v.folder, "manager")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", v.program, ".")
	build.Dir = "../../examples/manager"
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	first := newManager(t, &v, 8443)
	eventually(t, first.leads)
	second := newManager(t, &v, 8453)
	require.Error(t, second.leads())
	lease := func() (holder string, moves int32) {
		l, err := v.kube.CoordinationV1().Leases(home).Get(t.Context(), "virt-controller", metav1.GetOptions{})
		require.NoError(t, err)
		return *l.Spec.HolderIdentity, *l.Spec.LeaseTransitions
	}
	holder, before := lease()

	ns, err := v.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "embedded", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = v.kube.CoreV1().ServiceAccounts(ns.Name).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	s := space{t: t, name: ns.Name, vmis: v.vmis.VirtualMachineInstances(ns.Name), pods: v.kube.CoreV1().Pods(ns.Name)}
	p := s.pod(s.create(guest("hello")))

	require.NoError(t, first.cmd.Process.Signal(syscall.SIGKILL))
	killed := time.Now()
	require.Error(t, first.cmd.Wait())
	require.Equal(t, syscall.SIGKILL, first.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
	still, _ := lease()
	require.Equal(t, holder, still, "it did not give the lease back")
	v.kill(8443) // its address is taken out of the Service

	// While no process leads, the scheduler and the kubelet go on, and so do users.
	s.bind(p, "n1")
	s.status(p, running)
	s.create(guest("later"))
	require.Equal(t, "n1", s.awaitPhase("hello", vmi.PhaseScheduled).Status.NodeName)
	t.Logf("the VMI was handed over %s after the kill", time.Since(killed).Round(100*time.Millisecond))
	require.NoError(t, second.leads())
	now, moves := lease()
	require.NotEqual(t, holder, now)
	require.Equal(t, before+1, moves)
	same, err := s.pods.Get(t.Context(), p.Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, p.UID, same.UID, "the successor found the pod of the one before")

	later, err := s.vmis.Get(t.Context(), "later", metav1.GetOptions{})
	require.NoError(t, err)
	s.pod(later)
	s.delete("later")
	s.awaitGone("later")
	all, err := s.pods.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, all.Items, 1)
}
