package supervisor

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// emptyOn adds an empty disk to v, which is what the target says.
func emptyOn(v *vmi.VirtualMachineInstance, d vmi.Disk) {
	v.Spec.Volumes = append(v.Spec.Volumes, vmi.Volume{Name: d.Name, VolumeSource: vmi.VolumeSource{EmptyDisk: &vmi.EmptyDisk{Capacity: resource.MustParse("1Mi")}}})
	v.Spec.Domain.Devices.Disks = append(v.Spec.Domain.Devices.Disks, d)
}

// running is the domain as libvirt describes it.
func (p *pod) running() *libvirtxml.Domain {
	p.Helper()
	out, err := exec.Command(testenv.Program(p, "virsh"), "--quiet", "--connect", "qemu:///session?socket="+p.path("kubevirt-private/libvirt/run/libvirt/libvirt-sock"), "dumpxml", "default_vm").CombinedOutput()
	require.NoError(p, err, "%s", out)
	d := &libvirtxml.Domain{}
	require.NoError(p, d.Unmarshal(string(out)))
	return d
}

func TestEveryDiskThatASpecCanAskForIsStarted(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	v := instance()
	v.Spec.Domain.CPU = &vmi.CPU{Cores: 2}
	v.Spec.Domain.IOThreadsPolicy = vmi.IOThreadsAuto
	v.Spec.Domain.Devices.BlockMultiQueue = new(true)
	v.Spec.Domain.Devices.Disks[1] = vmi.Disk{Name: "seed", CDRom: &vmi.CDRomTarget{}}
	on := func(b vmi.DiskBus) *vmi.DiskTarget { return &vmi.DiskTarget{Bus: b} }
	for _, d := range []vmi.Disk{
		{Name: "sata", Disk: on(vmi.DiskBusSATA), ErrorPolicy: new(vmi.DiskErrorPolicyIgnore)},
		{Name: "scsi", Disk: on(vmi.DiskBusSCSI), ErrorPolicy: new(vmi.DiskErrorPolicyReport), Cache: vmi.DiskCacheWriteBack},
		{Name: "usb", Disk: on(vmi.DiskBusUSB), ErrorPolicy: new(vmi.DiskErrorPolicyENOSPACE), Cache: vmi.DiskCacheWriteThrough, Serial: "SN-usb"},
		{Name: "read-virtio", Disk: &vmi.DiskTarget{Bus: vmi.DiskBusVirtio, ReadOnly: true}, DedicatedIOThread: new(true)},
		{Name: "read-scsi", Disk: &vmi.DiskTarget{Bus: vmi.DiskBusSCSI, ReadOnly: true}},
		{Name: "read-usb", Disk: &vmi.DiskTarget{Bus: vmi.DiskBusUSB, ReadOnly: true}},
		{Name: "blocks", Disk: on(vmi.DiskBusVirtio), BlockSize: &vmi.BlockSize{Custom: &vmi.CustomBlockSize{Logical: 4096, Physical: 8192, DiscardGranularity: new(uint(65536))}}, IO: vmi.DiskIOThreads},
		{Name: "blocks-scsi", Disk: on(vmi.DiskBusSCSI), BlockSize: &vmi.BlockSize{Custom: &vmi.CustomBlockSize{Logical: 1024, Physical: 1024, DiscardGranularity: new(uint(2048))}}},
		{Name: "blocks-usb", Disk: on(vmi.DiskBusUSB), BlockSize: &vmi.BlockSize{Custom: &vmi.CustomBlockSize{Logical: 4096, Physical: 4096}}},
		{Name: "blocks-sata", BlockSize: &vmi.BlockSize{MatchVolume: &vmi.FeatureState{}}},
		{Name: "matched", Disk: on(vmi.DiskBusVirtio), BlockSize: &vmi.BlockSize{MatchVolume: &vmi.FeatureState{}}},
		{Name: "disc-scsi", CDRom: &vmi.CDRomTarget{Bus: vmi.DiskBusSCSI}},
		{Name: "disc-usb", CDRom: &vmi.CDRomTarget{Bus: vmi.DiskBusUSB}},
	} {
		emptyOn(v, d)
	}
	v.Spec.Domain.Devices.Disks = append(v.Spec.Domain.Devices.Disks,
		vmi.Disk{Name: "empty-sata", CDRom: &vmi.CDRomTarget{}}, vmi.Disk{Name: "empty-scsi", CDRom: &vmi.CDRomTarget{Bus: vmi.DiskBusSCSI}})
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: v}))
	p.phase(protocol.Running)
	p.says("test guest is up", 1)

	d := p.running()
	disks := map[string]libvirtxml.DomainDisk{}
	for _, disk := range d.Devices.Disks {
		disks[strings.TrimPrefix(disk.Alias.Name, "ua-")] = disk
	}
	require.Len(t, disks, len(v.Spec.Domain.Devices.Disks))
	require.Empty(t, disks["empty-sata"].Source.File.File)
	require.NotNil(t, disks["seed"].ReadOnly)
	require.NotNil(t, disks["read-usb"].ReadOnly)
	require.EqualValues(t, 4096, disks["matched"].BlockIO.LogicalBlockSize, "the blocks of tmpfs")
	require.EqualValues(t, 2, *disks["matched"].Driver.Queues)
	require.NotEqual(t, *disks["matched"].Driver.IOThread, *disks["read-virtio"].Driver.IOThread)
	state, err := p.client.State(t.Context())
	require.NoError(t, err)
	require.Nil(t, state.Finding, "devices are as desired")
	require.Len(t, state.Disks, len(v.Spec.Volumes), "an empty drive has no volume")
}

func TestAnIOErrorOnAnyBusNamesTheVolumeAndTheGuestGoesOn(t *testing.T) {
	t.Parallel()
	for _, b := range []vmi.DiskBus{vmi.DiskBusSATA, vmi.DiskBusSCSI, vmi.DiskBusUSB} {
		t.Run(string(b), func(t *testing.T) {
			t.Parallel()
			p := newPod(t, bootable(), "SPACE=24m")
			v := withoutSeed()
			v.Spec.Domain.Devices.Disks[1].Disk = &vmi.DiskTarget{Bus: b}
			require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: v}))
			p.phase(protocol.Running)
			p.says("test guest is up", 1)
			filler := p.path("kubevirt-ephemeral-disks/filler")
			fill(t, filler, 2<<20)
			p.write("w")
			require.Equal(t, protocol.Pause{Cause: protocol.PausedByIOError, Volume: "empty", Message: "volume empty: no space left"}, p.paused())
			require.NoError(t, os.Remove(filler))
			require.NoError(t, p.client.Call(t.Context(), protocol.CallUnpause, nil, nil))
			p.says("disk written", 1)
			require.NotContains(t, p.console.String(), "disk failed", "the guest saw no error")
		})
	}
}

func TestAnErrorThatIsReportedToTheGuestPausesNothing(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable(), "SPACE=24m")
	v := withoutSeed()
	v.Spec.Domain.Devices.Disks[1].ErrorPolicy = new(vmi.DiskErrorPolicyReport)
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: v}))
	p.phase(protocol.Running)
	p.says("test guest is up", 1)
	fill(t, p.path("kubevirt-ephemeral-disks/filler"), 2<<20)
	p.write("w")
	p.says("disk failed", 1)
	p.phase(protocol.Running)
}
