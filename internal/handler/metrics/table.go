package metrics

import (
	"github.com/podvisor/podvisor/internal/series"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

const (
	// second is one in nanoseconds.
	second = 1e9
	// inKiB is a byte in KiB.
	inKiB = 1.0 / 1024
)

// table are the metrics of VMIs. One more is an entry here, and what it reads is a name in
// launcher/protocol's stats.go. The dirty rate of memory is not there: it is known only where
// it is measured, which takes a second of each scrape and disturbs a migration.
var table = []series.Metric[Observation]{
	counter("kubevirt_vmi_cpu_usage_seconds_total",
		"Processor time of QEMU with all its threads, in seconds.",
		each(protocol.CPUTime, second)),
	counter("kubevirt_vmi_cpu_user_usage_seconds_total",
		"The part of it in user mode.",
		each(protocol.CPUUser, second)),
	counter("kubevirt_vmi_cpu_system_usage_seconds_total",
		"The part of it in the kernel.",
		each(protocol.CPUSystem, second)),
	counter("kubevirt_vmi_vcpu_seconds_total",
		"Seconds that a processor of the guest has run. id is its number from 0 on, state is what it does now: running, blocked, offline or unknown. "+
			"Sum over state before you compare: another state is another series of the same count.",
		each(protocol.VCPUTime, second, number, vcpuState), "id", "state"),
	counter("kubevirt_vmi_vcpu_wait_seconds_total",
		"Seconds that a processor of the guest has waited for I/O. The kernel of the node must have schedstats.",
		each(protocol.VCPUWait, second, number), "id"),
	counter("kubevirt_vmi_vcpu_delay_seconds_total",
		"Seconds that a processor of the guest has waited for a processor of the node.",
		each(protocol.VCPUDelay, second, number), "id"),
	gauge("kubevirt_vmi_node_cpu_affinity",
		"On how many processors of the node each of the guest may run, added up.",
		each(protocol.PinCells, 1)),
	gauge("kubevirt_vmi_memory_resident_bytes",
		"Memory of QEMU on the node.",
		each(protocol.BalloonRSS, inKiB)),
	gauge("kubevirt_vmi_memory_domain_bytes",
		"Memory that the guest has, as the balloon leaves it.",
		each(protocol.BalloonCurrent, inKiB)),
	gauge("kubevirt_vmi_memory_actual_balloon_bytes",
		"The same: libvirt has one number for both.",
		each(protocol.BalloonCurrent, inKiB)),
	gauge("kubevirt_vmi_memory_available_bytes",
		"Memory that the guest sees. The guest must have a driver of the balloon.",
		each(protocol.BalloonAvailable, inKiB)),
	gauge("kubevirt_vmi_memory_unused_bytes",
		"Memory that the guest uses for nothing. The guest must have a driver of the balloon.",
		each(protocol.BalloonUnused, inKiB)),
	gauge("kubevirt_vmi_memory_usable_bytes",
		"Memory that the guest could use without swapping. The guest must have a driver of the balloon.",
		each(protocol.BalloonUsable, inKiB)),
	gauge("kubevirt_vmi_memory_cached_bytes",
		"Memory that the guest uses as cache of disks. The guest must have a driver of the balloon.",
		each(protocol.BalloonCached, inKiB)),
	gauge("kubevirt_vmi_memory_swap_in_traffic_bytes",
		"Bytes that the guest has read from its swap since it booted.",
		each(protocol.BalloonSwapIn, inKiB)),
	gauge("kubevirt_vmi_memory_swap_out_traffic_bytes",
		"Bytes that the guest has written to its swap since it booted.",
		each(protocol.BalloonSwapOut, inKiB)),
	counter("kubevirt_vmi_memory_pgmajfault_total",
		"Page faults of the guest that read a disk.",
		each(protocol.MajorFault, 1)),
	counter("kubevirt_vmi_memory_pgminfault_total",
		"Page faults of the guest that read no disk.",
		each(protocol.MinorFault, 1)),
	counter("kubevirt_vmi_storage_iops_read_total",
		"Reads of a disk. drive is its name in the spec.",
		each(protocol.ReadRequests, 1, name), "drive"),
	counter("kubevirt_vmi_storage_read_traffic_bytes_total",
		"Bytes of the reads of a disk.",
		each(protocol.ReadBytes, 1, name), "drive"),
	counter("kubevirt_vmi_storage_iops_write_total",
		"Writes of a disk. drive is its name in the spec.",
		each(protocol.WriteRequests, 1, name), "drive"),
	counter("kubevirt_vmi_storage_write_traffic_bytes_total",
		"Bytes of the writes of a disk.",
		each(protocol.WriteBytes, 1, name), "drive"),
	counter("kubevirt_vmi_storage_read_times_seconds_total",
		"Seconds that the reads of a disk have taken, added up.",
		each(protocol.ReadTimes, second, name), "drive"),
	counter("kubevirt_vmi_storage_write_times_seconds_total",
		"Seconds that the writes of a disk have taken, added up.",
		each(protocol.WriteTimes, second, name), "drive"),
	counter("kubevirt_vmi_storage_flush_times_seconds_total",
		"Seconds that the flushes of a disk have taken, added up.",
		each(protocol.FlushTimes, second, name), "drive"),
	counter("kubevirt_vmi_storage_flush_requests_total",
		"Flushes of a disk.",
		each(protocol.FlushRequests, 1, name), "drive"),
	counter("kubevirt_vmi_network_receive_bytes_total",
		"Bytes that an interface receives. interface is its name in the spec.",
		each(protocol.ReceivedBytes, 1, name), "interface"),
	counter("kubevirt_vmi_network_receive_packets_total",
		"Packets that it receives.",
		each(protocol.ReceivedPackets, 1, name), "interface"),
	counter("kubevirt_vmi_network_receive_errors_total",
		"Packets that it receives with an error.",
		each(protocol.ReceivedErrors, 1, name), "interface"),
	counter("kubevirt_vmi_network_receive_packets_dropped_total",
		"Packets that it receives and that were dropped.",
		each(protocol.ReceivedDropped, 1, name), "interface"),
	counter("kubevirt_vmi_network_transmit_bytes_total",
		"Bytes that an interface transmits. interface is its name in the spec.",
		each(protocol.TransmittedBytes, 1, name), "interface"),
	counter("kubevirt_vmi_network_transmit_packets_total",
		"Packets that it transmits.",
		each(protocol.TransmittedPackets, 1, name), "interface"),
	counter("kubevirt_vmi_network_transmit_errors_total",
		"Packets that it transmits with an error.",
		each(protocol.TransmittedErrors, 1, name), "interface"),
	counter("kubevirt_vmi_network_transmit_packets_dropped_total",
		"Packets that it transmits and that were dropped.",
		each(protocol.TransmittedDropped, 1, name), "interface"),
	counter("kubevirt_vmi_network_traffic_bytes_total",
		"Deprecated: the bytes once more. type is rx or tx.",
		both(each(protocol.ReceivedBytes, 1, name, word("rx")), each(protocol.TransmittedBytes, 1, name, word("tx"))), "interface", "type"),
	gauge("kubevirt_vmi_filesystem_capacity_bytes",
		"Size of a mounted file system, as the agent in the guest says. So are the labels.",
		each(protocol.FileSystemTotal, 1, name, mountPoint, fileSystem), "disk_name", "mount_point", "file_system_type"),
	gauge("kubevirt_vmi_filesystem_used_bytes",
		"The part of it that is used.",
		each(protocol.FileSystemUsed, 1, name, mountPoint, fileSystem), "disk_name", "mount_point", "file_system_type"),
	gauge("kubevirt_vmi_guest_load_1m",
		"Average load of the guest over 1 minute, as its agent says. It must be of QEMU 10.0 or later.",
		each(protocol.Load1, 1)),
	gauge("kubevirt_vmi_guest_load_5m",
		"Average load of the guest over 5 minutes, as its agent says. It must be of QEMU 10.0 or later.",
		each(protocol.Load5, 1)),
	gauge("kubevirt_vmi_guest_load_15m",
		"Average load of the guest over 15 minutes, as its agent says. It must be of QEMU 10.0 or later.",
		each(protocol.Load15, 1)),
	with(identity, counter("kubevirt_vmi_migration_data_bytes_total",
		"Bytes to send in the migration under way. The source of a migration has these series while it sends.",
		each(protocol.JobTotal, 1))),
	with(identity, gauge("kubevirt_vmi_migration_data_processed_bytes",
		"Bytes that were sent.",
		each(protocol.JobProcessed, 1))),
	with(identity, gauge("kubevirt_vmi_migration_data_remaining_bytes",
		"Bytes that are left to send.",
		each(protocol.JobRemaining, 1))),
	with(identity, gauge("kubevirt_vmi_migration_dirty_memory_rate_bytes",
		"Bytes of its memory that the guest changes in a second.",
		dirtied)),
	with(identity, gauge("kubevirt_vmi_migration_memory_transfer_rate_bytes",
		"Bytes of its memory that are sent in a second.",
		each(protocol.JobSpeed, 1))),
	with(named, gauge("podvisor_vmi_stats_failed",
		"1 if the launcher of the VMI did not answer in time, or answered that there are none. Then the VMI has no other series.",
		failed)),
}

func counter(name, help string, read reader, labels ...string) series.Metric[Observation] {
	return series.Metric[Observation]{Info: series.Info{Name: name, Help: help, Type: series.Counter, Labels: labels}, Read: read}
}

func gauge(name, help string, read reader, labels ...string) series.Metric[Observation] {
	m := counter(name, help, read, labels...)
	m.Type = series.Gauge
	return m
}

// with is the metric with no other labels of the VMI than these.
func with(common func(*vmi.VirtualMachineInstance) []series.Label, m series.Metric[Observation]) series.Metric[Observation] {
	m.Common = func(o Observation) []series.Label { return common(o.Instance) }
	return m
}

func failed(o Observation, add func(float64, ...string)) {
	if o.Failed {
		add(1)
	}
}
