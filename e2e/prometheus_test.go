//go:build metrics

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/e2e/cluster/plan"
	"github.com/podvisor/podvisor/e2e/install"
	"github.com/podvisor/podvisor/e2e/monitoring"
	"github.com/podvisor/podvisor/e2e/toolchain"
	"github.com/podvisor/podvisor/vmi"
)

// elsewhere are metrics that others serve, which the local cluster does not have.
var elsewhere = regexp.MustCompile(`\b(kube_|container_|apiserver_)`)

// unmeasured are what is recorded of a guest, and not of that of the tests.
var unmeasured = map[string]string{
	"vmi:kubevirt_vmi_guest_queue_length:sum": "its agent is older than QEMU 10.0",
	"kubevirt_vmi_guest_vcpu_queue":           "its agent is older than QEMU 10.0",
	"kubevirt_vmi_migration_data_total_bytes": "it is not sent to another node",
}

// prometheus is a Prometheus that reads the cluster as docs/monitoring.md says.
type prometheus struct {
	space
	*monitoring.Server
}

// startPrometheus starts a Prometheus at the port of the control plane, with rules.
func startPrometheus(s space, port string, rules []byte) prometheus {
	t := s.t
	t.Helper()
	program, err := toolchain.Prometheus(t.Context(), toolchain.Config{Out: os.Stdout})
	require.NoError(t, err)
	require.NoError(t, applyScrape())
	secrets := world.kube.CoreV1().Secrets(install.Namespace)
	var token []byte
	eventually(t, soon, func() error {
		secret, err := secrets.Get(t.Context(), "podvisor-metrics", metav1.GetOptions{})
		if err == nil && len(secret.Data["token"]) == 0 {
			err = fmt.Errorf("the Secret has no token yet")
		}
		if err == nil {
			token = secret.Data["token"]
		}
		return err
	})
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "token"), token, 0o600))
	require.NoError(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: plan.Server, CertificateAuthorityData: world.config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: world.config.CertData, ClientKeyData: world.config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, filepath.Join(dir, "kubeconfig")))
	scrape, err := monitoring.ReadScrape("..", "token", "kubeconfig")
	require.NoError(t, err)
	p, err := monitoring.Start(t.Context(), monitoring.Config{
		Program: program, Dir: dir, Listen: net.JoinHostPort(plan.ControlPlane.Addr().String(), port), Rules: rules, Scrape: scrape, Interval: 5 * time.Second,
		Run: func(c *exec.Cmd) error {
			_, err := atControlPlane(func() (struct{}, error) { return struct{}{}, c.Start() })
			return err
		},
		Client: &http.Client{Transport: &http.Transport{DialContext: func(_ context.Context, network, address string) (net.Conn, error) {
			return atControlPlane(func() (net.Conn, error) { return net.Dial(network, address) })
		}}},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Stop()) })
	return prometheus{s, p}
}

// awaitNoSeries waits until Prometheus has no series of the namespace but those that rules record of
// the last half hour.
func (w prometheus) awaitNoSeries() {
	w.t.Helper()
	w.awaitNone(fmt.Sprintf(`{namespace=%q,__name__!~".*:rate30m"}`, w.name))
}

// query is an expression now.
func (w prometheus) query(expr string) []monitoring.Value {
	w.t.Helper()
	found, err := w.Query(w.t.Context(), expr)
	require.NoError(w.t, err, expr)
	return found
}

// awaitNone waits until an expression has no value.
func (w prometheus) awaitNone(expr string) {
	w.t.Helper()
	eventually(w.t, long, func() error {
		if found := w.query(expr); len(found) > 0 {
			return fmt.Errorf("%s: %v", expr, found)
		}
		return nil
	})
}

// awaitTargets waits until all pods of the components are read.
func (w prometheus) awaitTargets() {
	w.t.Helper()
	pods, err := world.kube.CoreV1().Pods(install.Namespace).List(w.t.Context(), metav1.ListOptions{LabelSelector: scrapedPods})
	require.NoError(w.t, err)
	want := map[string]string{}
	for _, p := range pods.Items {
		want[p.Name] = "1"
	}
	require.Len(w.t, want, 4)
	eventually(w.t, soon, func() error {
		got := map[string]string{}
		for _, v := range w.query(`up{namespace="kubevirt"}`) {
			got[v.Labels["pod"]] = v.Value
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("up is %v, not %v", got, want)
		}
		return nil
	})
	targets, err := w.Targets(w.t.Context())
	require.NoError(w.t, err)
	require.Len(w.t, targets, len(want))
	for _, target := range targets {
		require.Equal(w.t, monitoring.Health{Name: target.Name, Health: "up"}, target)
		require.True(w.t, strings.HasPrefix(target.Name, "https://"), target.Name)
	}
}

// recorded are the names that rules record of what Podvisor serves.
func recorded(t *testing.T, rules []byte) (out []string) {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []struct{ Record, Expr string }
		}
	}
	require.NoError(t, yaml.Unmarshal(rules, &file))
	not := elsewhere.String()
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			switch {
			case r.Record == "":
			case regexp.MustCompile(not).MatchString(r.Expr):
				not += "|" + regexp.QuoteMeta(r.Record) + `\b`
			default:
				out = append(out, r.Record)
			}
		}
	}
	return out
}

func TestAPrometheusReadsAHealthyClusterAndRaisesNoAlert(t *testing.T) {
	rules, err := monitoring.ReadRules("..")
	require.NoError(t, err)
	w := startPrometheus(newSpace(t), "9090", rules)
	w.awaitTargets()
	v := w.create(guest("rests", cloudConfig("hostname: rests")))
	w.applyVM(vmi.RunAlways, guest("rests-too", cloudConfig("hostname: rests")))
	v = w.awaitSteady(v.Name)
	w.awaitSteady("rests-too")

	names := recorded(t, rules)
	require.Greater(t, len(names), 10)
	for _, name := range names {
		if unmeasured[name] != "" {
			continue
		}
		eventually(t, soon, func() error {
			if len(w.query(fmt.Sprintf("{__name__=%q}", name))) == 0 {
				return fmt.Errorf("%s is not recorded", name)
			}
			return nil
		})
	}
	for _, expr := range []string{"cluster:kubevirt_virt_controller_up:sum", "cluster:kubevirt_virt_handler_up:sum"} {
		require.Equal(t, "2", w.query(expr)[0].Value, expr)
	}
	require.Equal(t, "1", w.query("cluster:kubevirt_virt_controller_leading:sum")[0].Value)
	all, err := w.Rules(t.Context())
	require.NoError(t, err)
	for _, r := range all {
		require.Equal(t, monitoring.Health{Name: r.Name, Health: "ok"}, r)
	}
	w.awaitNone("ALERTS")
	time.Sleep(time.Minute)
	require.Empty(t, w.query("count_over_time(ALERTS[50s])"), "none is pending or fires")

	w.delete(v.Name)
	w.awaitGone(v)
	require.NoError(t, world.vmis.VirtualMachines(w.name).Delete(t.Context(), "rests-too", metav1.DeleteOptions{}))
	w.comeAndGo(2) // the first ones make what is counted of all
	w.awaitNoSeries()
	var before map[string][]string
	eventually(t, soon, func() (err error) {
		before, err = w.series()
		return err
	})
	w.comeAndGo(*manyVMIs)
	eventually(t, soon, func() error {
		now, err := w.series()
		return errors.Join(err, differ(before, now))
	})
	w.awaitNoSeries()
	require.Empty(t, w.query(`count_over_time(ALERTS{alertstate="firing"}[12h])`))
	w.awaitNone("ALERTS")
	w.awaitTargets()

	// Alerts fire: here at once, without the time that a condition has to last.
	fires := startPrometheus(w.space, "9091", regexp.MustCompile(`(?m)^ +for: .*\n`).ReplaceAll(rules, nil))
	fires.awaitTargets()
	fires.awaitNone("ALERTS")
	_, err = world.kubectl.Run(t.Context(), "delete", "clusterrolebinding", "podvisor-metrics")
	require.NoError(t, err)
	eventually(t, long, func() error {
		var names []string
		for _, v := range fires.query(`ALERTS{alertstate="firing"}`) {
			names = append(names, v.Labels["alertname"])
		}
		if slices.Sort(names); fmt.Sprint(names) != "[NoLeadingVirtController VirtControllerDown VirtHandlerDown]" {
			return fmt.Errorf("alerts fire: %v", names)
		}
		return nil
	})
}
