package metrics

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// whole is a VMI of which everything is counted, with so many processors, disks, interfaces
// and file systems. All counts are 2048, or 2048 seconds.
func whole(processors, disks, interfaces, fileSystems int) Observation {
	v := vmitest.New(vmitest.WithCores(uint32(processors)))
	v.Status.NodeName = "n1"
	v.Spec.Domain.Devices.Disks, v.Spec.Domain.Devices.Interfaces = nil, nil
	o := Observation{Instance: v}
	part := func(number int, name string, all ...protocol.Stat) {
		p := protocol.Part{Group: all[0].Group(), Number: number, Name: name, Values: map[protocol.Stat]float64{}}
		for _, s := range all {
			p.Values[s] = 2048
		}
		o.Stats.Parts = append(o.Stats.Parts, p)
	}
	part(0, "", protocol.CPUTime, protocol.CPUUser, protocol.CPUSystem)
	part(0, "", protocol.PinCells)
	part(0, "", protocol.BalloonCurrent, protocol.BalloonRSS, protocol.BalloonAvailable, protocol.BalloonUnused, protocol.BalloonUsable, protocol.BalloonCached,
		protocol.BalloonSwapIn, protocol.BalloonSwapOut, protocol.MajorFault, protocol.MinorFault)
	part(0, "", protocol.Load1, protocol.Load5, protocol.Load15)
	for n := range processors {
		part(n, "", protocol.VCPUTime, protocol.VCPUWait, protocol.VCPUDelay)
	}
	for n := range disks {
		name := fmt.Sprintf("disk%d", n)
		v.Spec.Domain.Devices.Disks = append(v.Spec.Domain.Devices.Disks, vmi.Disk{Name: name})
		part(n, name, protocol.ReadRequests, protocol.WriteRequests, protocol.FlushRequests, protocol.ReadBytes, protocol.WriteBytes,
			protocol.ReadTimes, protocol.WriteTimes, protocol.FlushTimes)
	}
	for n := range interfaces {
		name := fmt.Sprintf("net%d", n)
		v.Spec.Domain.Devices.Interfaces = append(v.Spec.Domain.Devices.Interfaces, vmi.Interface{Name: name})
		part(n, name, protocol.ReceivedBytes, protocol.ReceivedPackets, protocol.ReceivedErrors, protocol.ReceivedDropped,
			protocol.TransmittedBytes, protocol.TransmittedPackets, protocol.TransmittedErrors, protocol.TransmittedDropped)
	}
	for n := range fileSystems {
		part(n, "vda1", protocol.FileSystemTotal, protocol.FileSystemUsed)
		p := &o.Stats.Parts[len(o.Stats.Parts)-1]
		p.MountPoint, p.Type = fmt.Sprintf("/%d", n), "ext4"
	}
	return o
}

// sends adds a migration that the guest is sent by.
func (o *Observation) sends() {
	o.Stats.Parts = append(o.Stats.Parts, protocol.Part{Group: protocol.Job, Values: map[protocol.Stat]float64{
		protocol.JobTotal: 1, protocol.JobProcessed: 2, protocol.JobRemaining: 3, protocol.JobDirtyPages: 4, protocol.JobPageSize: 4096, protocol.JobSpeed: 5,
	}})
}

func TestEveryMetricReadsWhatIsCountedInItsUnit(t *testing.T) {
	t.Parallel()
	o := whole(1, 1, 1, 1)
	o.Instance.Labels = map[string]string{"app": "web"}
	o.sends()
	const own = `kubernetes_vmi_label_app="web",name="testvmi",namespace="default",node="n1"`
	got := map[string]string{}
	for _, line := range text(Of(o)) {
		name, rest, _ := strings.Cut(line, "{")
		got[strings.TrimPrefix(name, "kubevirt_vmi_")] += strings.Replace("{"+rest, own, "…", 1)
	}
	bare, drive, iface, fs := `{…} `, `{drive="disk0",…} `, `{interface="net0",…} `, `{disk_name="vda1",file_system_type="ext4",`+
		`kubernetes_vmi_label_app="web",mount_point="/0",name="testvmi",namespace="default",node="n1"} `
	identity := `{name="testvmi",namespace="default",node="n1"} `
	require.Equal(t, map[string]string{
		"cpu_usage_seconds_total": bare + "2.048e-06", "cpu_user_usage_seconds_total": bare + "2.048e-06", "cpu_system_usage_seconds_total": bare + "2.048e-06",
		"vcpu_seconds_total":      `{id="0",…,state="unknown"} 2.048e-06`,
		"vcpu_wait_seconds_total": `{id="0",…} 2.048e-06`, "vcpu_delay_seconds_total": `{id="0",…} 2.048e-06`, "node_cpu_affinity": bare + "2048",
		"memory_resident_bytes": bare + "2.097152e+06", "memory_domain_bytes": bare + "2.097152e+06", "memory_actual_balloon_bytes": bare + "2.097152e+06",
		"memory_available_bytes": bare + "2.097152e+06", "memory_unused_bytes": bare + "2.097152e+06", "memory_usable_bytes": bare + "2.097152e+06",
		"memory_cached_bytes": bare + "2.097152e+06", "memory_swap_in_traffic_bytes": bare + "2.097152e+06", "memory_swap_out_traffic_bytes": bare + "2.097152e+06",
		"memory_pgmajfault_total": bare + "2048", "memory_pgminfault_total": bare + "2048",
		"storage_iops_read_total": drive + "2048", "storage_iops_write_total": drive + "2048", "storage_flush_requests_total": drive + "2048",
		"storage_read_traffic_bytes_total": drive + "2048", "storage_write_traffic_bytes_total": drive + "2048",
		"storage_read_times_seconds_total": drive + "2.048e-06", "storage_write_times_seconds_total": drive + "2.048e-06", "storage_flush_times_seconds_total": drive + "2.048e-06",
		"network_receive_bytes_total": iface + "2048", "network_receive_packets_total": iface + "2048",
		"network_receive_errors_total": iface + "2048", "network_receive_packets_dropped_total": iface + "2048",
		"network_transmit_bytes_total": iface + "2048", "network_transmit_packets_total": iface + "2048",
		"network_transmit_errors_total": iface + "2048", "network_transmit_packets_dropped_total": iface + "2048",
		"network_traffic_bytes_total": `{interface="net0",…,type="rx"} 2048{interface="net0",…,type="tx"} 2048`,
		"filesystem_capacity_bytes":   fs + "2048", "filesystem_used_bytes": fs + "2048",
		"guest_load_1m": bare + "2048", "guest_load_5m": bare + "2048", "guest_load_15m": bare + "2048",
		"migration_data_bytes_total": identity + "1", "migration_data_processed_bytes": identity + "2", "migration_data_remaining_bytes": identity + "3",
		"migration_dirty_memory_rate_bytes": identity + "16384", "migration_memory_transfer_rate_bytes": identity + "5",
	}, got)
	require.Len(t, got, len(table)-1, "all but podvisor_vmi_stats_failed")
}

func TestALauncherThatDoesNotAnswerIsASeries(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{`podvisor_vmi_stats_failed{name="testvmi",namespace="default"} 1`}, text(Of(Observation{Instance: onNode(map[string]string{"app": "web"}), Failed: true})))
}

func TestTheNumberOfSeriesOfAVMIIsAsDocumented(t *testing.T) {
	t.Parallel()
	const perVMI, perCPU, perDisk, perInterface, perFileSystem, perMigration = 18, 3, 8, 10, 2, 5
	for _, n := range [][4]int{{1, 0, 0, 0}, {4, 2, 1, 4}, {64, 20, 8, 32}} {
		o := whole(n[0], n[1], n[2], n[3])
		want := perVMI + perCPU*n[0] + perDisk*n[1] + perInterface*n[2] + perFileSystem*n[3]
		require.Len(t, Of(o), want)
		o.sends()
		require.Len(t, Of(o), want+perMigration)
	}
	require.Equal(t, 2*32, len(Of(whole(1, 0, 0, 500)))-len(Of(whole(1, 0, 0, 0))), "at most 32 file systems")
	page, err := os.ReadFile("../../../docs/monitoring.md")
	require.NoError(t, err)
	require.Contains(t, string(page), fmt.Sprintf("%d + %d V + %d D + %d I + %d F", perVMI, perCPU, perDisk, perInterface, perFileSystem))
}

func TestAttackALauncherInventsNoDisksAndNoInterfaces(t *testing.T) {
	t.Parallel()
	o := whole(1, 1, 1, 0)
	before := len(Of(o))
	for n := range 100 {
		o.Stats.Parts = append(o.Stats.Parts,
			protocol.Part{Group: protocol.Block, Number: n, Name: fmt.Sprintf("invented%d", n), Values: map[protocol.Stat]float64{protocol.ReadBytes: 1}},
			protocol.Part{Group: protocol.Net, Number: n, Name: fmt.Sprintf("invented%d", n), Values: map[protocol.Stat]float64{protocol.ReceivedBytes: 1}},
			protocol.Part{Group: protocol.CPU, Number: n + 1, Values: map[protocol.Stat]float64{protocol.CPUTime: 1}},
			protocol.Part{Group: protocol.Job, Number: n + 1, Values: map[protocol.Stat]float64{protocol.JobDirtyPages: 1}},
			protocol.Part{Group: protocol.Block, Number: n, Name: "disk0", Values: map[protocol.Stat]float64{protocol.ReadBytes: math.Pi}})
	}
	require.Len(t, Of(o), before)
}
