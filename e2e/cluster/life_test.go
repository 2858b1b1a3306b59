package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/e2e/cluster"
	"github.com/podvisor/podvisor/e2e/cluster/host"
	"github.com/podvisor/podvisor/e2e/cluster/plan"
	"github.com/podvisor/podvisor/internal/testenv"
)

const timeout = time.Minute

// TestLife goes through the life of one cluster, because starting one takes seconds.
func TestLife(t *testing.T) {
	needs(t)
	c := config(t, "life")
	before := look(t, c.Name)
	l := life{t: t, config: c, cluster: up(t, c)}
	l.step("a second up finds the cluster running and leaves it alone", func(t *testing.T, w world) {
		id := w.id()
		up(t, c)
		require.Equal(t, id, w.id())
	})
	l.images()
	l.pods()
	l.step("the audit log has every request", func(t *testing.T, w world) {
		log, err := os.ReadFile(w.c.AuditLog)
		require.NoError(t, err)
		require.Contains(t, string(log), `"requestURI":"/api/v1/namespaces/default/pods?`)
	})
	l.step("nothing of the whole host is changed", func(t *testing.T, w world) {
		require.Equal(t, before, look(t, c.Name))
	})
	l.killed()
	l.step("another cluster runs beside it", func(t *testing.T, w world) {
		other := config(t, "life-beside")
		other.Extent = plan.APIServer
		beside := world{t: t, c: up(t, other)}
		require.Empty(t, beside.c.NodeNames())
		beside.kubectl("create", "namespace", "mine")
		_, err := w.try("get", "namespace", "mine")
		require.Error(t, err)
		require.NoError(t, beside.c.Down(t.Context()))
		require.Empty(t, w.c.Problems(t.Context()))
	})
	l.died()
	l.step("down leaves nothing", func(t *testing.T, w world) {
		require.NoError(t, w.c.Down(t.Context()))
		require.NoError(t, cluster.Down(t.Context(), c), "of what is not there")
		requireGone(t, c, before)
	})
}

// life is a test of one cluster in steps, each of which needs the one before.
type life struct {
	t       *testing.T
	config  cluster.Config
	cluster *cluster.Cluster
}

func (l life) step(name string, do func(t *testing.T, w world)) {
	l.t.Helper()
	if !l.t.Run(name, func(t *testing.T) { do(t, world{t: t, c: l.cluster}) }) {
		l.t.FailNow()
	}
}

func (l life) images() {
	l.step("an image is loaded once", func(t *testing.T, w world) {
		archive := busybox(t)
		for _, want := range []string{"loaded to n1, n2", "on the nodes already"} {
			var out bytes.Buffer
			config := l.config
			config.Out = &out
			opened, err := cluster.Open(config)
			require.NoError(t, err)
			require.NoError(t, opened.Load(t.Context(), archive))
			require.Contains(t, out.String(), want)
		}
	})
}

func (l life) pods() {
	l.step("pods run on both nodes, with user namespaces too", func(t *testing.T, w world) {
		w.apply(manifest)
		w.kubectl("wait", "--for=condition=Ready", "pod", "--all", "--timeout=5m")
	})
	l.step("pods resolve and reach Services from any node", func(t *testing.T, w world) {
		for _, pod := range []string{"client-n1", "client-n2"} {
			w.awaitWeb(pod)
			require.Contains(t, w.kubectl("exec", pod, "--", "nslookup", "kubernetes.default.svc.cluster.local"), plan.APIService.String())
		}
	})
	l.step("a name outside of the cluster does not exist", func(t *testing.T, w world) {
		out, err := w.try("exec", "client-n2", "--", "nslookup", "example.com")
		require.Error(t, err)
		require.Contains(t, out, "NXDOMAIN")
	})
	l.step("a node's /run/cdi is what pods see at /var/run/cdi", func(t *testing.T, w world) {
		require.NoError(t, w.c.Node("n1").Command(t.Context(), "touch", "/run/cdi/seen").Run())
		require.Equal(t, "seen\n", w.kubectl("exec", "web", "--", "ls", "/cdi"))
	})
}

// killed kills every kind of program, and a whole node.
func (l life) killed() {
	for _, m := range []string{"cp", "n1"} {
		for program := range (world{t: l.t, c: l.cluster}).programs(m) {
			if slices.Contains(l.cluster.NodeNames(), program) {
				continue // see below
			}
			l.step(program+" on "+m+" comes back when killed", func(t *testing.T, w world) {
				id := w.id()
				w.kill(m, program)
				up(t, l.config)
				require.Equal(t, id, w.id(), "the cluster was not started anew")
			})
		}
	}
	l.step("a node comes back when killed, and its pods with it", func(t *testing.T, w world) {
		id := w.id()
		w.kill("cp", "n1")
		up(t, l.config)
		require.Equal(t, id, w.id(), "the cluster was not started anew")
		w.awaitWeb("client-n2")
	})
}

// died kills process 1.
func (l life) died() {
	l.step("a cluster that has died is started anew at the same address", func(t *testing.T, w world) {
		id, address := w.id(), w.kubectl("config", "view", "-o", "jsonpath={.clusters[0].cluster.server}")
		pid, err := w.c.Node("cp").PID()
		require.NoError(t, err)
		process, err := os.FindProcess(pid)
		require.NoError(t, err)
		require.NoError(t, process.Kill())
		require.Eventually(t, func() bool { return len(w.c.Problems(t.Context())) > 0 }, timeout, time.Millisecond)
		up(t, l.config)
		require.NotEqual(t, id, w.id())
		require.Equal(t, address, w.kubectl("config", "view", "-o", "jsonpath={.clusters[0].cluster.server}"))
	})
}

// TestKilledStarter kills the program that starts a cluster at several points.
func TestKilledStarter(t *testing.T) {
	needs(t)
	c := config(t, "killed")
	before := look(t, c.Name)
	dir := stateDir(t, c.Name)
	program := filepath.Join(t.TempDir(), "podvisor-cluster")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, "../cmd/podvisor-cluster")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	for _, point := range []string{"port", "plan.json", "init.lock", "cp/log/kube-apiserver.log"} {
		t.Run("killed when there is "+point, func(t *testing.T) {
			require.NoError(t, cluster.Down(t.Context(), c))
			cmd := exec.Command(program, "up", "--name", c.Name)
			require.NoError(t, cmd.Start())
			require.Eventually(t, func() bool {
				_, err := os.Stat(filepath.Join(dir, point))
				return err == nil
			}, timeout, time.Millisecond)
			require.NoError(t, cmd.Process.Kill())
			_ = cmd.Wait()
			up(t, c)
		})
	}
	require.NoError(t, cluster.Down(t.Context(), c))
	requireGone(t, c, before)
}

// TestBroken says what a person sees when a program cannot run.
func TestBroken(t *testing.T) {
	needs(t)
	c := config(t, "broken")
	c.Extent = plan.APIServer
	w := world{t: t, c: up(t, c)}
	// etcd cannot start with something else where its data should be.
	data := filepath.Join(w.c.Node("cp").Dir(), "etcd")
	require.NoError(t, os.RemoveAll(data))
	require.NoError(t, os.WriteFile(data, nil, 0o600))
	w.kill("cp", "etcd")
	require.Eventually(t, func() bool {
		for _, p := range w.c.Problems(t.Context()) {
			if strings.Contains(p.What, "etcd on cp is broken: exit status 1") {
				return p.Log == host.LogPath(w.c.Node("cp").Dir(), "etcd")
			}
		}
		return false
	}, timeout, 10*time.Millisecond)
}

func needs(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts clusters")
	}
	testenv.Root(t)
	testenv.Program(t, "go")
}

// config names a cluster of this test and removes it when the test ends.
func config(t *testing.T, name string) cluster.Config {
	c := cluster.Config{Name: "test-" + name, Out: testWriter{t}}
	t.Cleanup(func() { require.NoError(t, cluster.Down(context.Background(), c)) })
	return c
}

func up(t *testing.T, c cluster.Config) *cluster.Cluster {
	t.Helper()
	started, err := cluster.Up(t.Context(), c)
	require.NoError(t, err)
	require.Empty(t, started.Problems(t.Context()))
	return started
}

func stateDir(t *testing.T, name string) string {
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	return filepath.Join(cache, "podvisor", "clusters", name)
}

// testWriter sends what a cluster says to the test's log.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimRight(string(b), "\n"))
	return len(b), nil
}

// world is a running cluster.
type world struct {
	t *testing.T
	c *cluster.Cluster
}

// id differs for each start of the cluster.
func (w world) id() string {
	data, err := os.ReadFile(filepath.Join(filepath.Dir(w.c.Kubeconfig), host.PlanFile))
	require.NoError(w.t, err)
	var p plan.Plan
	require.NoError(w.t, json.Unmarshal(data, &p))
	return p.ID
}

func (w world) try(args ...string) (string, error) {
	cmd := exec.Command(w.c.Kubectl, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.c.Kubeconfig)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (w world) kubectl(args ...string) string {
	w.t.Helper()
	out, err := w.try(args...)
	require.NoError(w.t, err, out)
	return out
}

func (w world) apply(manifest string) {
	w.t.Helper()
	cmd := exec.Command(w.c.Kubectl, "--kubeconfig", w.c.Kubeconfig, "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(manifest)
	out, err := cmd.CombinedOutput()
	require.NoError(w.t, err, string(out))
}

// awaitWeb waits until the pod gets what the Service web serves.
func (w world) awaitWeb(pod string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		out, err := w.try("exec", pod, "--", "wget", "-qO-", "http://web")
		return err == nil && out == "web\n"
	}, timeout, 200*time.Millisecond, pod)
}

// programs are the programs that run on a host.
func (w world) programs(m string) map[string]host.ProgramStatus {
	status, err := host.ReadStatus(w.c.Node(m).Dir())
	require.NoError(w.t, err)
	running := map[string]host.ProgramStatus{}
	for _, p := range status.Programs {
		if p.State == host.Running {
			running[p.Name] = p
		}
	}
	return running
}

// kill kills a program from inside its host's process namespace, where no
// PID is of a process outside, and waits until the status shows it.
func (w world) kill(m, program string) {
	w.t.Helper()
	p, ok := w.programs(m)[program]
	require.True(w.t, ok, "%s runs on %s", program, m)
	out, err := w.c.Node(m).Command(w.t.Context(), "/bin/kill", "-9", strconv.Itoa(p.PID)).CombinedOutput()
	require.NoError(w.t, err, string(out))
	require.Eventually(w.t, func() bool { return w.programs(m)[program] != p }, timeout, time.Millisecond)
}
