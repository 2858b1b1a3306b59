package main

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/series"
)

// alerts are those of KubeVirt: name, severity, and how long the condition lasts before.
const alerts = `
GuestFilesystemAlmostOutOfSpace critical
GuestFilesystemAlmostOutOfSpace warning 10m
GuestVCPUQueueHighCritical critical
GuestVCPUQueueHighWarning warning
KubeVirtDeprecatedAPIRequested info
KubeVirtNoAvailableNodesToRunVMs warning 5m
KubeVirtVMGuestMemoryAvailableLow info 30m
KubeVirtVMGuestMemoryPressure warning 5m
KubeVirtVMIExcessiveMigrations warning
LowKVMNodesCount warning 5m
LowReadyVirtAPICount warning 10m
LowReadyVirtControllersCount warning 10m
LowReadyVirtHandlerCount warning 10m
LowReadyVirtOperatorsCount warning 10m
LowVirtAPICount warning 60m
LowVirtControllersCount warning 10m
LowVirtOperatorCount warning 60m
NoLeadingVirtController critical 10m
NoLeadingVirtOperator critical 10m
NoReadyVirtAPI critical 10m
NoReadyVirtController critical 10m
NoReadyVirtHandler critical 10m
NoReadyVirtOperator critical 10m
OrphanedVirtualMachineInstances warning 10m
OutdatedVirtualMachineInstanceWorkloads warning 24h
VMCannotBeEvicted warning 1m
VMNonRecoverableOSPanic critical 1m
VirtAPIDown critical 10m
VirtApiRESTErrorsBurst critical 5m
VirtControllerDown critical 10m
VirtControllerRESTErrorsBurst critical 5m
VirtHandlerDaemonSetRolloutFailing warning 15m
VirtHandlerDown critical 10m
VirtHandlerRESTErrorsBurst critical 5m
VirtLauncherPodsStuckFailed critical 10m
VirtOperatorDown critical 10m
VirtOperatorRESTErrorsBurst critical 5m
VirtualMachineStuckInUnhealthyState warning 10m
VirtualMachineStuckOnNode warning 5m
`

func allRules(t *testing.T) []rule {
	t.Helper()
	all, err := readRules("../../" + rulesFile)
	require.NoError(t, err)
	return all
}

func TestAlertsAreThoseOfKubeVirt(t *testing.T) {
	t.Parallel()
	raised, names := map[string]bool{}, map[string]bool{}
	for _, r := range allRules(t) {
		if r.Alert == "" {
			continue
		}
		names[r.Alert] = true
		if !strings.HasPrefix(r.Alert, "Podvisor") {
			raised[strings.TrimSpace(r.Alert+" "+r.Labels["severity"]+" "+r.For)] = true
		}
		impact := r.Labels["operator_health_impact"]
		require.Contains(t, []string{"none", "critical", "warning"}, impact, r.Alert)
		require.Equal(t, []string{"kubevirt", "kubevirt"}, []string{r.Labels["kubernetes_operator_part_of"], r.Labels["kubernetes_operator_component"]}, r.Alert)
		require.NotEqual(t, r.Labels["namespace"] == "", r.Labels["vm"] == "", "%s is about a component or about a VM", r.Alert)
	}
	left := map[string]bool{}
	for _, e := range elsewhere {
		require.False(t, names[e[0]], "%s is raised", e[0])
		left[e[0]] = true
		if _, instead, ok := strings.Cut(e[1], "`"); ok {
			require.True(t, names[strings.TrimSuffix(instead, "`")], "%s is not raised", instead)
		}
	}
	for line := range strings.Lines(strings.TrimSpace(alerts)) {
		line = strings.TrimSpace(line)
		name, _, _ := strings.Cut(line, " ")
		require.NotEqual(t, left[name], raised[line], "%s is raised, or left out", line)
		delete(raised, line)
		delete(left, name)
	}
	require.Empty(t, raised, "KubeVirt has no such alerts")
	require.Empty(t, left, "KubeVirt has no such alerts")
}

var (
	quoted   = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	selector = regexp.MustCompile(`([a-zA-Z_:][\w:]*)\s*\{([^}]*)\}`)
	name     = regexp.MustCompile(`[a-zA-Z_:][\w:]*`)
	foreign  = regexp.MustCompile(`^(kube|container|apiserver)_\w+$|^up$`)
)

// checkQuery requires that what a query reads of Podvisor is served, or recorded by a rule.
func checkQuery(t *testing.T, query string, all []rule) {
	t.Helper()
	known := map[string]series.Info{}
	for _, m := range served() {
		known[m.Name] = m
		if m.Type == series.Histogram {
			known[m.Name+"_bucket"] = series.Info{Labels: append(slices.Clone(m.Labels), "le")}
		}
	}
	for _, s := range sections() {
		for _, m := range s.metrics {
			known[m.Name] = m
		}
	}
	recorded := map[string]bool{}
	for _, r := range all {
		recorded[r.Record] = true
	}
	bare := quoted.ReplaceAllString(query, "")
	for _, word := range name.FindAllString(bare, -1) {
		if strings.HasPrefix(word, "kubevirt_") || strings.HasPrefix(word, "podvisor_") || strings.Contains(word, ":") {
			_, is := known[word]
			require.True(t, is || recorded[word], "%s is neither served nor recorded: %s", word, query)
		}
	}
	for _, found := range selector.FindAllStringSubmatch(bare, -1) {
		m, is := known[found[1]]
		if !is {
			require.True(t, recorded[found[1]] || foreign.MatchString(found[1]), "%s: %s", found[1], query)
			continue
		}
		for _, label := range name.FindAllString(found[2], -1) {
			require.Contains(t, append([]string{"name", "namespace", "node", "pod"}, m.Labels...), label, "label of %s: %s", found[1], query)
		}
	}
}

func TestRulesReadOnlyWhatIsServed(t *testing.T) {
	t.Parallel()
	all := allRules(t)
	for _, r := range all {
		checkQuery(t, r.Expr, all)
	}
}

func TestTheDashboardReadsOnlyWhatIsServed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../manifests/monitoring/dashboard/podvisor.json")
	require.NoError(t, err)
	var d struct {
		Templating struct {
			List []struct{ Name, Type, Definition string }
		}
		Panels []struct {
			ID      int
			Type    string
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &d))
	all, ids, queries := allRules(t), map[int]bool{}, 0
	variables := map[string]bool{"__rate_interval": true}
	for _, v := range d.Templating.List {
		variables[v.Name] = true
		checkQuery(t, v.Definition, all)
	}
	for _, p := range d.Panels {
		require.False(t, ids[p.ID], "two panels have the number %d", p.ID)
		ids[p.ID] = true
		require.Equal(t, p.Type == "row", len(p.Targets) == 0, p.Title)
		for _, q := range p.Targets {
			queries++
			checkQuery(t, q.Expr, all)
			for _, v := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(q.Expr, -1) {
				require.True(t, variables[v[1]], "the dashboard has no variable %s: %s", v[1], q.Expr)
			}
		}
	}
	require.Greater(t, queries, 20)
}
