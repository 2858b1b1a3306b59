package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// ofEveryDisk writes to the console what the guest sees of its disks, by their serial
// numbers, and whether it can write to them and read that again.
const ofEveryDisk = `#!/bin/sh
mkdir -p /tmp
for b in /sys/block/vd* /sys/block/sd* /sys/block/sr*; do
  [ -e $b ] || continue
  disk=/dev/${b##*/}
  serial=$(cat $b/serial 2>/dev/null)
  [ -n "$serial" ] || serial=$(tail -c +5 $b/device/vpd_pg80 2>/dev/null | tr -d '\000')
  wrote=no
  if [ "$(cat $b/ro)" = 0 ] && [ "$serial" != "" ]; then
    dd if=/proc/cmdline of=/tmp/out bs=4096 count=1 conv=sync 2>/dev/null
    dd if=/tmp/out of=$disk bs=4096 seek=3 conv=notrunc,fsync 2>/dev/null
    echo 3 > /proc/sys/vm/drop_caches
    dd if=$disk of=/tmp/in bs=4096 skip=3 count=1 2>/dev/null
    cmp -s /tmp/in /tmp/out && wrote=yes
  fi
  echo "disk ${b##*/} [$serial] $(cat $b/queue/logical_block_size)/$(cat $b/queue/physical_block_size) ro=$(cat $b/ro) queues=$(ls $b/mq 2>/dev/null | wc -l) wrote=$wrote" > /dev/console
done
echo "processors $(grep -c ^processor /proc/cpuinfo)" > /dev/console
echo "disks are seen" > /dev/console
`

// TestAGuestReadsAndWritesEveryDisk has a disk of each kind that the guest's kernel has
// drivers for; those of SATA and USB are written in launcher/supervisor.
func TestAGuestReadsAndWritesEveryDisk(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	v := guest("disks", ofEveryDisk, vmitest.WithGracePeriod(1))
	d := &v.Spec.Domain
	d.CPU = &vmi.CPU{Cores: 2}
	d.IOThreadsPolicy, d.IOThreads = vmi.IOThreadsSupplementalPool, &vmi.IOThreads{SupplementalPoolThreadCount: new(uint32(2))}
	d.Devices.BlockMultiQueue = new(true)
	for i := range d.Devices.Disks {
		if d.Devices.Disks[i].Name == "seed" {
			d.Devices.Disks[i] = vmi.Disk{Name: "seed", CDRom: &vmi.CDRomTarget{Bus: vmi.DiskBusSCSI}}
		}
	}
	add := func(k vmi.Disk) {
		d.Devices.Disks = append(d.Devices.Disks, k)
		v.Spec.Volumes = append(v.Spec.Volumes, vmi.Volume{Name: k.Name, VolumeSource: vmi.VolumeSource{EmptyDisk: &vmi.EmptyDisk{Capacity: resource.MustParse("8Mi")}}})
	}
	add(vmi.Disk{Name: "plain", Serial: "plain", Disk: &vmi.DiskTarget{Bus: vmi.DiskBusVirtio}, Cache: vmi.DiskCacheWriteBack})
	add(vmi.Disk{Name: "own", Serial: "own", Disk: &vmi.DiskTarget{Bus: vmi.DiskBusVirtio}, DedicatedIOThread: new(true), IO: vmi.DiskIOThreads})
	add(vmi.Disk{Name: "blocks", Serial: "blocks", Disk: &vmi.DiskTarget{Bus: vmi.DiskBusVirtio}, BlockSize: &vmi.BlockSize{Custom: &vmi.CustomBlockSize{Logical: 4096, Physical: 4096, DiscardGranularity: new(uint(65536))}}})
	add(vmi.Disk{Name: "read", Serial: "read", Disk: &vmi.DiskTarget{Bus: vmi.DiskBusVirtio, ReadOnly: true}})
	add(vmi.Disk{Name: "scsi", Serial: "scsi", Disk: &vmi.DiskTarget{Bus: vmi.DiskBusSCSI}, ErrorPolicy: new(vmi.DiskErrorPolicyReport)})
	add(vmi.Disk{Name: "sata", Disk: &vmi.DiskTarget{Bus: vmi.DiskBusSATA}})
	add(vmi.Disk{Name: "usb", Disk: &vmi.DiskTarget{Bus: vmi.DiskBusUSB}})
	d.Devices.Disks = append(d.Devices.Disks, vmi.Disk{Name: "empty", CDRom: &vmi.CDRomTarget{Bus: vmi.DiskBusSATA}})
	s.create(v)
	made := s.awaitPhase("disks", vmi.PhaseRunning)
	console := s.awaitConsole(made, "disks are seen") // the script is on the CD-ROM
	for _, want := range []string{
		"[plain] 512/512 ro=0 queues=2 wrote=yes",
		"[own] 512/512 ro=0 queues=2 wrote=yes",
		"[blocks] 4096/4096 ro=0 queues=2 wrote=yes",
		"[read] 512/512 ro=1 queues=2 wrote=no",
		"[scsi] 512/512 ro=0",
		"disk sr0 ",
		"processors 2",
	} {
		require.Contains(t, console, want)
	}
	require.NotContains(t, console, "[scsi] 512/512 ro=0 queues=1 wrote=no")
	cpu := s.pod(made).Spec.Containers[0].Resources.Requests[corev1.ResourceCPU]
	require.Equal(t, "400m", cpu.String(), "a tenth of each of two processors and two I/O threads")
	for _, status := range made.Status.VolumeStatus {
		require.NotEqual(t, "empty", status.Name, "an empty drive is no volume")
	}
}
