package prometheus

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// fields are labels in the notation of Prometheus.
const (
	controller = `namespace="kubevirt",pod="virt-controller-%s"`
	handler    = `namespace="kubevirt",pod="virt-handler-%s"`
	web        = `name="web",namespace="t"`
	onNode     = `name="web",namespace="t",node="n1"`
	launcher   = `namespace="t",pod="virt-launcher-web-x"`
)

// for as long as the cases last, in minutes.
const (
	one  = "1x2000"
	zero = "0x2000"
)

// healthy are the series of a cluster with two nodes and a VM, by their names and labels: the value
// at first, and how it changes in each minute.
func healthy() map[string]string {
	all := map[string]string{
		`kube_deployment_spec_replicas{namespace="kubevirt",deployment="virt-controller"}`:                                    "2x2000",
		`kube_daemonset_status_number_ready{namespace="kubevirt",daemonset="virt-handler"}`:                                   "2x2000",
		`kube_daemonset_status_desired_number_scheduled{namespace="kubevirt",daemonset="virt-handler"}`:                       "2x2000",
		`kubevirt_virt_controller_leading_status{namespace="kubevirt",pod="virt-controller-1"}`:                               one,
		`kubevirt_virt_controller_leading_status{namespace="kubevirt",pod="virt-controller-2"}`:                               zero,
		`kubevirt_configuration_emulation_enabled{namespace="kubevirt",pod="virt-controller-1"}`:                              zero,
		`kubevirt_vmi_number_of_outdated{namespace="kubevirt",pod="virt-controller-1"}`:                                       zero,
		`podvisor_unreadable_objects{namespace="kubevirt",resource="virtualmachines"}`:                                        zero,
		`kubevirt_vm_info{` + web + `,status="running",status_group="running"}`:                                               one,
		`kubevirt_vmi_info{` + onNode + `,phase="running",evictable="true"}`:                                                  one,
		`kubevirt_vmi_non_evictable{` + onNode + `}`:                                                                          zero,
		`kubevirt_vm_disk_allocated_size_bytes{` + web + `,persistentvolumeclaim="root"}`:                                     "1000x2000",
		`kube_persistentvolumeclaim_resource_requests_storage_bytes{namespace="t",persistentvolumeclaim="root"}`:              "1000x2000",
		`kube_persistentvolumeclaim_resource_requests_storage_bytes{namespace="t",persistentvolumeclaim="orphan"}`:            "500x2000",
		`kube_pod_info{` + launcher + `,node="n1"}`:                                                                           one,
		`kube_pod_status_phase{` + launcher + `,phase="Running"}`:                                                             one,
		`kube_pod_status_phase{` + launcher + `,phase="Failed"}`:                                                              zero,
		`kube_pod_container_resource_requests{` + launcher + `,container="compute",resource="memory"}`:                        "300x2000",
		`container_memory_working_set_bytes{` + launcher + `,container="compute"}`:                                            "200x2000",
		`container_memory_rss{` + launcher + `,container="compute"}`:                                                          "150x2000",
		`kubevirt_vmi_memory_available_bytes{` + onNode + `}`:                                                                 "1000x2000",
		`kubevirt_vmi_memory_usable_bytes{` + onNode + `}`:                                                                    "600x2000",
		`kubevirt_vmi_memory_pgmajfault_total{` + onNode + `}`:                                                                "0+10x2000",
		`kubevirt_vmi_memory_swap_in_traffic_bytes{` + onNode + `}`:                                                           zero,
		`kubevirt_vmi_memory_swap_out_traffic_bytes{` + onNode + `}`:                                                          zero,
		`kubevirt_vmi_vcpu_seconds_total{` + onNode + `,id="0",state="running"}`:                                              "0+60x2000",
		`kubevirt_vmi_vcpu_seconds_total{` + onNode + `,id="0",state="blocked"}`:                                              zero,
		`kubevirt_vmi_vcpu_seconds_total{` + onNode + `,id="1",state="running"}`:                                              "0+60x2000",
		`kubevirt_vmi_guest_load_1m{` + onNode + `,kubernetes_vmi_label_app="web"}`:                                           "5x2000",
		`kubevirt_vmi_migration_data_bytes_total{` + onNode + `}`:                                                             "7x2000",
		`kubevirt_vmi_filesystem_used_bytes{` + onNode + `,disk_name="vda1",mount_point="/",file_system_type="ext4"}`:         "50x2000",
		`kubevirt_vmi_filesystem_capacity_bytes{` + onNode + `,disk_name="vda1",mount_point="/",file_system_type="ext4"}`:     "100x2000",
		`kubevirt_vmi_filesystem_used_bytes{` + onNode + `,disk_name="sr0",mount_point="/cd",file_system_type="ISO9660"}`:     "100x2000",
		`kubevirt_vmi_filesystem_capacity_bytes{` + onNode + `,disk_name="sr0",mount_point="/cd",file_system_type="ISO9660"}`: "100x2000",
		`apiserver_requested_deprecated_apis{group="kubevirt.io",version="v1alpha3",resource="virtualmachines"}`:              one,
		`apiserver_request_total{group="kubevirt.io",version="v1alpha3",resource="virtualmachines",verb="LIST"}`:              "0+1x2000",
		`apiserver_request_total{group="kubevirt.io",version="v1",resource="virtualmachines",verb="POST"}`:                    "0+1x2000",
	}
	for _, n := range []string{"1", "2"} {
		all[`kube_node_info{node="n`+n+`"}`] = one
		all[`kube_node_status_allocatable{node="n`+n+`",resource="cpu"}`] = "8x2000"
		all[`kube_node_status_allocatable{node="n`+n+`",resource="devices_kubevirt_io_kvm"}`] = "1000x2000"
		all[`kube_node_labels{node="n`+n+`",label_kubevirt_io_schedulable="true"}`] = one
		all[`kube_node_spec_unschedulable{node="n`+n+`"}`] = zero
		for container, of := range map[string]string{"virt-controller": fmt.Sprintf(controller, n), "virt-handler": fmt.Sprintf(handler, n)} {
			all[`up{job="kubevirt-prometheus-metrics",`+of+`}`] = one
			all[`kube_pod_info{`+of+`,node="n`+n+`"}`] = one
			all[`kube_pod_status_phase{`+of+`,phase="Running"}`] = one
			all[`kube_pod_status_ready{`+of+`,condition="true"}`] = one
			all[`kubevirt_rest_client_requests_total{`+of+`,code="200"}`] = "0+10x2000"
			all[`kubevirt_rest_client_requests_total{`+of+`,code="409"}`] = "0+3x2000"
			all[`kube_pod_container_resource_requests{`+of+`,container="`+container+`",resource="memory"}`] = "64x2000"
			all[`container_memory_working_set_bytes{`+of+`,container="`+container+`"}`] = "80x2000"
			all[`container_memory_rss{`+of+`,container="`+container+`"}`] = "70x2000"
		}
	}
	return all
}

// fires is a case in which alerts fire.
type fires struct {
	name string
	// without are beginnings of series of the healthy cluster that are not there.
	without []string
	// with are series that are there too, or with other values.
	with map[string]string
	// after is how many minutes later, and before when no alert fires yet. 0: it is not asked.
	after, before int
	// alerts are all that fire, with the labels of their objects.
	alerts []string
}

// gone are the beginnings of the series of a component that has no pods.
func gone(component string) (out []string) {
	for _, metric := range []string{"up", "kube_pod_info", "kube_pod_status_phase", "kube_pod_status_ready", "kubevirt_rest_client_requests_total"} {
		job := ""
		if metric == "up" {
			job = `job="kubevirt-prometheus-metrics",`
		}
		out = append(out, metric+`{`+job+`namespace="kubevirt",pod="`+component)
	}
	return out
}

const rootDisk = `{` + onNode + `,disk_name="vda1",mount_point="/",file_system_type="ext4"}`

var cases = []fires{
	{name: "a healthy cluster", after: 60},
	{name: "a cluster without kube-state-metrics", without: []string{"kube_"}, after: 60},
	{name: "a cluster with emulation", without: []string{`kube_node_status_allocatable{node="n1",resource="dev`, `kube_node_status_allocatable{node="n2",resource="dev`},
		with: map[string]string{`kubevirt_configuration_emulation_enabled{namespace="kubevirt",pod="virt-controller-1"}`: one}, after: 30},
	{name: "a cluster without KVM", without: []string{`kube_node_status_allocatable{node="n1",resource="dev`, `kube_node_status_allocatable{node="n2",resource="dev`},
		before: 4, after: 6, alerts: []string{`{alertname="KubeVirtNoAvailableNodesToRunVMs"}`, `{alertname="LowKVMNodesCount"}`}},
	{name: "one node with KVM", without: []string{`kube_node_status_allocatable{node="n2",resource="dev`}, before: 4, after: 6, alerts: []string{`{alertname="LowKVMNodesCount"}`}},
	{name: "all nodes are cordoned", with: map[string]string{`kube_node_spec_unschedulable{node="n1"}`: one, `kube_node_spec_unschedulable{node="n2"}`: one},
		before: 4, after: 6, alerts: []string{`{alertname="KubeVirtNoAvailableNodesToRunVMs"}`}},
	{name: "no virt-controller", without: append(gone("virt-controller"), "kubevirt_virt_controller_leading_status"), before: 9, after: 11,
		alerts: []string{`{alertname="LowVirtControllersCount"}`, `{alertname="NoLeadingVirtController"}`, `{alertname="NoReadyVirtController"}`, `{alertname="VirtControllerDown"}`}},
	{name: "no virt-controller and no kube-state-metrics", without: append(gone("virt-controller"), "kubevirt_virt_controller_leading_status", "kube_"), before: 9, after: 11,
		alerts: []string{`{alertname="NoLeadingVirtController"}`, `{alertname="VirtControllerDown"}`}},
	{name: "no virt-controller leads", without: []string{"kubevirt_virt_controller_leading_status"}, before: 9, after: 11, alerts: []string{`{alertname="NoLeadingVirtController"}`}},
	{name: "one virt-controller of two runs", without: gone("virt-controller-2"), before: 9, after: 11, alerts: []string{`{alertname="LowVirtControllersCount"}`}},
	{name: "one virt-controller of two is ready", with: map[string]string{`kube_pod_status_ready{namespace="kubevirt",pod="virt-controller-2",condition="true"}`: zero},
		before: 9, after: 11, alerts: []string{`{alertname="LowReadyVirtControllersCount"}`}},
	{name: "no virt-handler", without: gone("virt-handler"), with: map[string]string{`kube_daemonset_status_number_ready{namespace="kubevirt",daemonset="virt-handler"}`: zero},
		before: 9, after: 16, alerts: []string{`{alertname="NoReadyVirtHandler"}`, `{alertname="OrphanedVirtualMachineInstances",node="n1"}`,
			`{alertname="VirtHandlerDaemonSetRolloutFailing"}`, `{alertname="VirtHandlerDown"}`}},
	{name: "the virt-handler of a node with a VMI is not ready", with: map[string]string{`kube_pod_status_ready{namespace="kubevirt",pod="virt-handler-1",condition="true"}`: zero},
		before: 9, after: 11, alerts: []string{`{alertname="LowReadyVirtHandlerCount"}`, `{alertname="OrphanedVirtualMachineInstances",node="n1"}`}},
	{name: "the requests of virt-controller fail", with: map[string]string{`kubevirt_rest_client_requests_total{namespace="kubevirt",pod="virt-controller-1",code="error"}`: "0+200x2000"},
		after: 8, alerts: []string{`{alertname="VirtControllerRESTErrorsBurst"}`}},
	{name: "the requests of virt-handler fail", with: map[string]string{`kubevirt_rest_client_requests_total{namespace="kubevirt",pod="virt-handler-2",code="403"}`: "0+200x2000"},
		after: 8, alerts: []string{`{alertname="VirtHandlerRESTErrorsBurst"}`}},
	{name: "launchers failed", with: failedLaunchers(200), before: 9, after: 11, alerts: []string{`{alertname="VirtLauncherPodsStuckFailed"}`}},
	{name: "fewer launchers failed", with: failedLaunchers(199), after: 11},
	{name: "a client creates by a version of before", with: map[string]string{
		`apiserver_request_total{group="kubevirt.io",version="v1alpha3",resource="virtualmachines",verb="POST"}`: "0+1x2000"},
		after: 5, alerts: []string{`{alertname="KubeVirtDeprecatedAPIRequested"}`}},
	{name: "a VMI cannot be evicted", with: map[string]string{`kubevirt_vmi_non_evictable{` + onNode + `}`: one}, after: 2, alerts: []string{`{alertname="VMCannotBeEvicted",name="web",node="n1",vm="web"}`}},
	{name: "launchers are outdated", with: map[string]string{`kubevirt_vmi_number_of_outdated{namespace="kubevirt",pod="virt-controller-1"}`: "3x2000"},
		before: 1430, after: 1450, alerts: []string{`{alertname="OutdatedVirtualMachineInstanceWorkloads"}`}},
	{name: "a VMI moves often", with: moves(12), after: 40, alerts: []string{`{alertname="KubeVirtVMIExcessiveMigrations",name="web",vm="web"}`}},
	{name: "a VMI moves", with: moves(11), after: 40},
	{name: "a guest has much to run", with: map[string]string{`kubevirt_vmi_guest_load_1m{` + onNode + `,kubernetes_vmi_label_app="web"}`: "13x2000"}, after: 2,
		alerts: []string{`{alertname="GuestVCPUQueueHighWarning",name="web",vm="web"}`}},
	{name: "a guest has very much to run", with: map[string]string{`kubevirt_vmi_guest_load_1m{` + onNode + `,kubernetes_vmi_label_app="web"}`: "23x2000"}, after: 2,
		alerts: []string{`{alertname="GuestVCPUQueueHighCritical",name="web",vm="web"}`, `{alertname="GuestVCPUQueueHighWarning",name="web",vm="web"}`}},
	{name: "a VM without a VMI does not start", with: map[string]string{`kubevirt_vm_info{name="db",namespace="t",status="errimagepull",status_group="error"}`: one},
		before: 9, after: 11, alerts: []string{`{alertname="VirtualMachineStuckInUnhealthyState",name="db",vm="db"}`}},
	{name: "a VM with a VMI does not end", without: []string{"kubevirt_vm_info"}, with: map[string]string{`kubevirt_vm_info{` + web + `,status="stopping",status_group="non_running"}`: one},
		before: 4, after: 6, alerts: []string{`{alertname="VirtualMachineStuckOnNode",name="web",node="n1",vm="web"}`}},
	{name: "a file system is almost full", with: map[string]string{`kubevirt_vmi_filesystem_used_bytes` + rootDisk: "90x2000"}, before: 9, after: 11,
		alerts: []string{`{alertname="GuestFilesystemAlmostOutOfSpace",name="web",severity="warning",vm="web"}`}},
	{name: "a file system is full", with: map[string]string{`kubevirt_vmi_filesystem_used_bytes` + rootDisk: "96x2000"}, after: 2,
		alerts: []string{`{alertname="GuestFilesystemAlmostOutOfSpace",name="web",severity="critical",vm="web"}`}},
	{name: "a guest has no memory and swaps", with: map[string]string{`kubevirt_vmi_memory_usable_bytes{` + onNode + `}`: "20x2000",
		`kubevirt_vmi_memory_swap_in_traffic_bytes{` + onNode + `}`: "0+100000000x2000"}, after: 60, alerts: []string{`{alertname="KubeVirtVMGuestMemoryPressure",name="web",vm="web"}`}},
	{name: "a guest has no memory and does not swap", with: map[string]string{`kubevirt_vmi_memory_usable_bytes{` + onNode + `}`: "20x2000"}, before: 29, after: 32,
		alerts: []string{`{alertname="KubeVirtVMGuestMemoryAvailableLow",name="web",vm="web"}`}},
	{name: "a launcher hangs", with: map[string]string{`podvisor_vmi_stats_failed{` + web + `}`: one}, before: 9, after: 11, alerts: []string{`{alertname="PodvisorVMIStatsFailed",name="web",vm="web"}`}},
	{name: "an object cannot be read", with: map[string]string{`podvisor_unreadable_objects{namespace="kubevirt",resource="virtualmachines"}`: one}, before: 9, after: 11,
		alerts: []string{`{alertname="PodvisorUnreadableObjects"}`}},
}

func failedLaunchers(n int) map[string]string {
	out := map[string]string{}
	for i := range n {
		out[fmt.Sprintf(`kube_pod_status_phase{namespace="t",pod="virt-launcher-%d",phase="Failed"}`, i)] = one
	}
	return out
}

// moves are migrations of which each is there for three minutes.
func moves(n int) map[string]string {
	out := map[string]string{}
	for i := range n {
		out[fmt.Sprintf(`kubevirt_vmi_migration_succeeded{namespace="t",vmi="web",vmim="m%d"}`, i)] = fmt.Sprintf("_x%d 1x3 stale", 3*i)
	}
	return out
}

// sample is what an expression is: labels and a value.
type sample struct {
	labels string
	value  float64
}

// question is what an expression is after so many minutes.
type question struct {
	expr   string
	minute int
	want   []sample
}

func ask(expr string, minute int, want ...sample) question { return question{expr, minute, want} }

// firing is an expression: the alerts that fire, with the labels of their objects.
const firing = `group by (alertname, name, vm, node) (ALERTS{alertstate="firing",alertname!="GuestFilesystemAlmostOutOfSpace"})
  or group by (alertname, name, vm, severity) (ALERTS{alertstate="firing",alertname="GuestFilesystemAlmostOutOfSpace"})`

// readRules are the rules of manifests/monitoring, and a file of Prometheus with them.
func readRules(t *testing.T) (all []rulefmt.Rule, file string) {
	t.Helper()
	text, err := os.ReadFile("../../../manifests/monitoring/operator/rules.yaml")
	require.NoError(t, err)
	var object struct{ Spec yaml.Node }
	require.NoError(t, yaml.Unmarshal(text, &object))
	spec, err := yaml.Marshal(&object.Spec)
	require.NoError(t, err)
	groups, faults := rulefmt.Parse(spec, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	require.Empty(t, faults)
	for _, g := range groups.Groups {
		all = append(all, g.Rules...)
	}
	file = filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(file, spec, 0o600))
	return all, file
}

// evaluate evaluates the rules each minute on the series, and requires the answers.
func evaluate(t *testing.T, file string, series map[string]string, questions []question) {
	t.Helper()
	var load strings.Builder
	load.WriteString("load 1m\n")
	for _, name := range slices.Sorted(maps.Keys(series)) {
		fmt.Fprintf(&load, "  %s %s\n", name, series[name])
	}
	l, err := promqltest.NewLazyLoader(load.String(), promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	m := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(l.QueryEngine(), l.Storage()), AppendableV2: l.Storage(), Queryable: l.Storage(), Context: t.Context(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Logger: slog.New(slog.DiscardHandler), Parser: parser.NewParser(parser.Options{}),
	})
	loaded, faults := m.LoadGroups(time.Minute, labels.EmptyLabels(), "", nil, false, file)
	require.Empty(t, faults)
	groups := slices.SortedFunc(maps.Values(loaded), func(a, b *rules.Group) int { return -strings.Compare(a.Name(), b.Name()) }) // what is recorded comes first
	require.Equal(t, "recordingRules.rules", groups[0].Name())
	for _, g := range groups {
		for _, r := range g.Rules() {
			if a, ok := r.(*rules.AlertingRule); ok {
				a.SetRestored(true)
			}
		}
	}
	last := slices.MaxFunc(questions, func(a, b question) int { return a.minute - b.minute }).minute
	for minute := range last + 1 {
		now := time.Unix(int64(minute)*60, 0).UTC()
		l.WithSamplesTill(now, func(err error) { require.NoError(t, err) })
		for _, g := range groups {
			g.Eval(t.Context(), now)
			for _, r := range g.Rules() {
				require.NoError(t, r.LastError(), r.Name())
			}
		}
		for _, q := range questions {
			if q.minute == minute {
				require.ElementsMatch(t, q.samples(t), values(t, l, q.expr, now), "%s after %d minutes", q.expr, minute)
			}
		}
	}
}

// samples are what is wanted, in the notation of [values].
func (q question) samples(t *testing.T) (out []string) {
	for _, s := range q.want {
		m, err := parser.NewParser(parser.Options{}).ParseMetric(s.labels)
		require.NoError(t, err)
		out = append(out, fmt.Sprint(m, " ", s.value))
	}
	return out
}

// values are the labels and the value of each series of an expression.
func values(t *testing.T, l *promqltest.LazyLoader, expr string, at time.Time) (out []string) {
	t.Helper()
	q, err := l.QueryEngine().NewInstantQuery(t.Context(), l.Queryable(), nil, expr, at)
	require.NoError(t, err)
	defer q.Close()
	found, err := q.Exec(t.Context()).Vector()
	require.NoError(t, err)
	for _, s := range found {
		out = append(out, fmt.Sprint(s.Metric, " ", s.F))
	}
	return out
}

// recorded are what rules record in the healthy cluster.
var recorded = []question{
	ask("cluster:kubevirt_virt_handler_up:sum", 20, sample{"cluster:kubevirt_virt_handler_up:sum{}", 2}),
	ask("kubevirt_virt_controller_ready", 20, sample{"kubevirt_virt_controller_ready{}", 2}),
	ask("kubevirt_allocatable_nodes", 20, sample{"kubevirt_allocatable_nodes{}", 2}),
	ask("kubevirt_memory_delta_from_requested_bytes", 20,
		sample{`kubevirt_memory_delta_from_requested_bytes{container="virt-controller",reason="memory_working_set_delta_from_request"}`, 16},
		sample{`kubevirt_memory_delta_from_requested_bytes{container="virt-controller",reason="memory_rss_delta_from_request"}`, 6},
		sample{`kubevirt_memory_delta_from_requested_bytes{container="virt-handler",reason="memory_working_set_delta_from_request"}`, 16},
		sample{`kubevirt_memory_delta_from_requested_bytes{container="virt-handler",reason="memory_rss_delta_from_request"}`, 6}),
	ask("kubevirt_number_of_vms", 20, sample{`kubevirt_number_of_vms{namespace="t"}`, 1}),
	ask("kubevirt_vmi_phase_count", 20, sample{`kubevirt_vmi_phase_count{node="n1",phase="running"}`, 1}),
	ask("kubevirt_vmi_memory_used_bytes", 20, sample{`kubevirt_vmi_memory_used_bytes{` + onNode + `}`, 400}),
	ask("vmi:kubevirt_vmi_vcpu:count", 20, sample{`vmi:kubevirt_vmi_vcpu:count{` + onNode + `}`, 2}),
	ask("kubevirt_vmi_guest_vcpu_queue", 20, sample{`kubevirt_vmi_guest_vcpu_queue{` + web + `}`, 3}),
	ask("vmi:kubevirt_vmi_memory_headroom_ratio:sum", 20, sample{`vmi:kubevirt_vmi_memory_headroom_ratio:sum{` + web + `}`, 0.6}),
	ask("kubevirt_vm_container_memory_request_margin_based_on_rss_bytes", 20,
		sample{`kubevirt_vm_container_memory_request_margin_based_on_rss_bytes{` + launcher + `,container="compute"}`, 150}),
	ask("pvc:kubevirt_suspected_orphaned_storage_bytes:info", 20,
		sample{`pvc:kubevirt_suspected_orphaned_storage_bytes:info{namespace="t",persistentvolumeclaim="orphan"}`, 500}),
	ask("kubevirt_api_request_deprecated_total", 20,
		sample{`kubevirt_api_request_deprecated_total{group="kubevirt.io",version="v1alpha3",resource="virtualmachines",verb="LIST"}`, 20}),
}

func TestTheRulesRecordAndAlert(t *testing.T) {
	t.Parallel()
	all, file := readRules(t)
	fired := map[string]bool{}
	for i, c := range cases {
		questions := []question{ask(firing, c.after)}
		for _, a := range c.alerts {
			questions[0].want = append(questions[0].want, sample{a, 1})
			name, _, _ := strings.Cut(strings.TrimPrefix(a, `{alertname="`), `"`)
			fired[name] = true
		}
		if c.before > 0 {
			questions = append(questions, ask(firing, c.before))
		}
		if i == 0 {
			questions = append(questions, recorded...)
			for _, r := range all {
				if r.Record != "" { // it records something
					questions = append(questions, ask(fmt.Sprintf("group({__name__=%q})", r.Record), 20, sample{"{}", 1}))
				}
			}
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			series := healthy()
			maps.DeleteFunc(series, func(name, _ string) bool {
				return slices.ContainsFunc(c.without, func(begin string) bool { return strings.HasPrefix(name, begin) })
			})
			maps.Copy(series, c.with)
			evaluate(t, file, series, questions)
		})
	}
	for _, r := range all {
		if r.Alert == "" {
			continue
		}
		require.True(t, fired[r.Alert], "no case has the alert %s fire", r.Alert)
		require.NotEmpty(t, r.Annotations["summary"], r.Alert)
		require.NotEmpty(t, r.Annotations["description"], r.Alert)
	}
}
