package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/series"
)

// contract are the metrics of KubeVirt of VMs and VMIs and of its components: name, type (c
// counter, g gauge, h histogram), and its own labels. A + is one that is not served, and why.
const contract = `
vmi_cpu_usage_seconds_total c
vmi_cpu_user_usage_seconds_total c
vmi_cpu_system_usage_seconds_total c
vmi_vcpu_seconds_total c id state
vmi_vcpu_wait_seconds_total c id
vmi_vcpu_delay_seconds_total c id
vmi_node_cpu_affinity g
vmi_memory_resident_bytes g
vmi_memory_domain_bytes g
vmi_memory_actual_balloon_bytes g
vmi_memory_available_bytes g
vmi_memory_unused_bytes g
vmi_memory_usable_bytes g
vmi_memory_cached_bytes g
vmi_memory_swap_in_traffic_bytes g
vmi_memory_swap_out_traffic_bytes g
vmi_memory_pgmajfault_total c
vmi_memory_pgminfault_total c
vmi_storage_iops_read_total c drive
vmi_storage_iops_write_total c drive
vmi_storage_read_traffic_bytes_total c drive
vmi_storage_write_traffic_bytes_total c drive
vmi_storage_read_times_seconds_total c drive
vmi_storage_write_times_seconds_total c drive
vmi_storage_flush_times_seconds_total c drive
vmi_storage_flush_requests_total c drive
vmi_network_receive_bytes_total c interface
vmi_network_receive_packets_total c interface
vmi_network_receive_errors_total c interface
vmi_network_receive_packets_dropped_total c interface
vmi_network_transmit_bytes_total c interface
vmi_network_transmit_packets_total c interface
vmi_network_transmit_errors_total c interface
vmi_network_transmit_packets_dropped_total c interface
vmi_network_traffic_bytes_total c interface type
vmi_filesystem_capacity_bytes g disk_name mount_point file_system_type
vmi_filesystem_used_bytes g disk_name mount_point file_system_type
vmi_guest_load_1m g
vmi_guest_load_5m g
vmi_guest_load_15m g
vmi_dirty_rate_bytes_per_second g + it is known only where it is measured, at each scrape
vmi_migration_data_bytes_total c
vmi_migration_data_remaining_bytes g
vmi_migration_data_processed_bytes g
vmi_migration_dirty_memory_rate_bytes g
vmi_migration_memory_transfer_rate_bytes g
vmi_gpu_info g pod resource uuid + KubeVirt never emits it
info g goversion kubeversion + podvisor serves its version at /healthz
node_deprecated_machine_types g machine_type node + it is not known per node
virt_handler_ready_status g + readiness is that of the pod
vmi_guest_os_panic_total c namespace name type bugcheck_code + the status counts panics, and a series would outlive its VMI
vm_info g os workload flavor machine_type instance_type preference status status_group
vm_starting_status_last_transition_timestamp_seconds c
vm_running_status_last_transition_timestamp_seconds c
vm_migrating_status_last_transition_timestamp_seconds c
vm_non_running_status_last_transition_timestamp_seconds c
vm_error_status_last_transition_timestamp_seconds c
vm_create_date_timestamp_seconds g
vm_labels g label_ + the caches keep no labels of VMs
vm_resource_requests g resource unit source
vm_resource_limits g resource unit
vm_disk_allocated_size_bytes g persistentvolumeclaim volume_mode device
vm_vnic_info g vnic_name binding_type network binding_name model
vmi_vnic_info g vnic_name binding_type network binding_name model
vmi_info g phase os workload flavor instance_type preference guest_os_kernel_release guest_os_machine guest_os_arch guest_os_name guest_os_version_id evictable outdated vmi_pod
vmi_non_evictable g
vmi_launcher_memory_overhead_bytes g
vmi_status_addresses g vnic_name interface_name address type
vmi_migration_start_time_seconds g migration_name
vmi_migration_end_time_seconds g migration_name status
vmi_migrations_in_pending_phase g
vmi_migrations_in_scheduling_phase g
vmi_migrations_in_unset_phase g
vmi_migrations_in_running_phase g
vmi_migration_succeeded g vmi vmim namespace
vmi_migration_failed g vmi vmim namespace
vmi_phase_transition_time_seconds h phase last_phase
vmi_phase_transition_time_from_creation_seconds h phase
vmi_phase_transition_time_from_deletion_seconds h phase
vmi_migration_phase_transition_time_from_creation_seconds h phase
vmsnapshot_succeeded_timestamp_seconds g name snapshot_name namespace + there are no snapshots
vmi_number_of_outdated g
vmi_sync_total c namespace name + it grows with every VMI that there was
virt_controller_ready_status g + readiness is that of the pod
virt_controller_leading_status g
vnc_active_connections g namespace vmi + labels come from the URL, and the series stay
console_active_connections g namespace vmi + the same
usbredir_active_connections g namespace vmi + the same
portforward_active_tunnels g namespace vmi + the same
vmi_last_api_connection_timestamp_seconds g namespace vmi + the same
vm_created_by_pod_total c namespace + it is deprecated
virt_api_ready_status g + there is no virt-api
virt_operator_ready_status g + there is no virt-operator
virt_operator_leading_status g + the same
configuration_emulation_enabled g
workqueue_depth g name
workqueue_adds_total c name
workqueue_retries_total c name
workqueue_unfinished_work_seconds g name
workqueue_longest_running_processor_seconds g name
workqueue_queue_duration_seconds h name
workqueue_work_duration_seconds h name
rest_client_requests_total c code method host resource verb
rest_client_request_latency_seconds h verb url + requests are counted, and not timed
rest_client_rate_limiter_duration_seconds h verb url + the same
`

// fewer are metrics that are served with other labels, and why.
var fewer = map[string]string{
	"vmi_info":                   "what the guest runs is not in the status of a VMI",
	"rest_client_requests_total": "labels of requests are method, resource, subresource and code",
}

var types = map[string]series.Type{"c": series.Counter, "g": series.Gauge, "h": series.Histogram}

// served are all metrics, by their names without the prefix.
func served() map[string]series.Info {
	out := map[string]series.Info{}
	for _, s := range sections() {
		for _, m := range s.metrics {
			if name, ok := strings.CutPrefix(m.Name, "kubevirt_"); ok {
				out[name] = m
			}
		}
	}
	return out
}

func TestMetricsAreThoseOfKubeVirt(t *testing.T) {
	t.Parallel()
	equal, known, got := 0, map[string]bool{}, served()
	for line := range strings.Lines(strings.TrimSpace(contract)) {
		line, why, left := strings.Cut(line, " + ")
		words := strings.Fields(line)
		name := words[0]
		require.False(t, known[name], name)
		known[name] = true
		m, is := got[name]
		require.NotEqual(t, left, is, "%s is left out (%s), or is served", name, strings.TrimSpace(why))
		if left {
			continue
		}
		require.Equal(t, types[words[1]], m.Type, name)
		want := slices.Sorted(slices.Values(words[2:]))
		if have := slices.Sorted(slices.Values(m.Labels)); fewer[name] == "" {
			require.ElementsMatch(t, want, have, name)
			equal++
		} else {
			require.NotElementsMatch(t, want, have, name)
		}
	}
	for name := range got {
		require.True(t, known[name], "KubeVirt has no %s: a metric of Podvisor alone begins with podvisor_", name)
	}
	t.Logf("%d of %d metrics are equal in name, type and labels, %d differ in labels, %d are not served", equal, len(known), len(fewer), len(known)-equal-len(fewer))
}

// dashboards are the metrics that public dashboards for KubeVirt use.
const dashboards = `vmi_memory_available_bytes vmi_memory_usable_bytes vmi_memory_domain_bytes vmi_memory_used_bytes vmi_memory_swap_in_traffic_bytes
vmi_memory_swap_out_traffic_bytes vmi_cpu_usage_seconds_total vmi_vcpu_wait_seconds_total vmi_vcpu_delay_seconds_total vmi_storage_iops_read_total
vmi_storage_iops_write_total vmi_storage_read_traffic_bytes_total vmi_storage_write_traffic_bytes_total vmi_network_receive_bytes_total
vmi_network_transmit_bytes_total vmi_filesystem_used_bytes vmi_filesystem_capacity_bytes vmi_launcher_memory_overhead_bytes vmi_non_evictable
vmi_migration_end_time_seconds vmi_info vm_info vm_resource_requests vm_disk_allocated_size_bytes vm_create_date_timestamp_seconds
vm_starting_status_last_transition_timestamp_seconds vm_running_status_last_transition_timestamp_seconds
vm_migrating_status_last_transition_timestamp_seconds vm_non_running_status_last_transition_timestamp_seconds
vm_error_status_last_transition_timestamp_seconds vmi_phase_transition_time_seconds vmi_phase_transition_time_from_creation_seconds
workqueue_depth workqueue_adds_total workqueue_retries_total workqueue_unfinished_work_seconds workqueue_longest_running_processor_seconds
workqueue_queue_duration_seconds workqueue_work_duration_seconds`

// recorded are those that a rule of Prometheus makes, of metrics that are served.
var recorded = map[string][]string{"vmi_memory_used_bytes": {"vmi_memory_available_bytes", "vmi_memory_usable_bytes"}}

func TestTheMetricsOfPublicDashboardsAreServed(t *testing.T) {
	t.Parallel()
	all, got := strings.Fields(dashboards), served()
	require.Len(t, all, 39)
	for _, name := range all {
		of := recorded[name]
		if of == nil {
			of = []string{name}
		}
		for _, name := range of {
			require.Contains(t, got, name)
		}
	}
	t.Logf("%d of %d are served, %d are recorded by a rule", len(all)-len(recorded), len(all), len(recorded))
}
