package domain

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/golden"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

func TestADiskOfAVolumeThatIsOnlyReadIsReadOnlyWhereItsBusHasSuchDisks(t *testing.T) {
	t.Parallel()
	for bus, ok := range map[vmi.DiskBus]bool{vmi.DiskBusVirtio: true, vmi.DiskBusSCSI: true, vmi.DiskBusUSB: true, vmi.DiskBusSATA: false, "": false} {
		v := instance(disksOn(bus))
		d, err := Build(v, host(v, func(h *Host) {
			for name, d := range h.Disks {
				d.ReadOnly = true
				h.Disks[name] = d
			}
		}))
		if !ok {
			require.ErrorIs(t, err, vmi.ErrInvalid)
			require.ErrorContains(t, err, "is read-only, which disks on the bus sata cannot be")
			continue
		}
		require.NoError(t, err)
		require.NotNil(t, d.Devices.Disks[0].ReadOnly)
	}
}

// withDisks has these disks, each with a volume.
func withDisks(all ...vmi.Disk) func(*vmi.VirtualMachineInstance) {
	return func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Devices.Disks = all
		for _, d := range all {
			v.Spec.Volumes = append(v.Spec.Volumes, vmi.Volume{Name: d.Name})
		}
	}
}

// withoutVolume leaves the disk of this name without a volume and an attachment.
func withoutVolume(v *vmi.VirtualMachineInstance, name string) func(*Host) {
	var kept []vmi.Volume
	for _, volume := range v.Spec.Volumes {
		if volume.Name != name {
			kept = append(kept, volume)
		}
	}
	v.Spec.Volumes = kept
	return func(h *Host) { delete(h.Disks, name) }
}

// changed changes the attachments of the disks.
func changed(change func(*Disk), names ...string) func(*Host) {
	return func(h *Host) {
		for _, name := range names {
			d := h.Disks[name]
			change(&d)
			h.Disks[name] = d
		}
	}
}

func inDevice(d *Disk) { d.Device, d.Path = true, "/dev/"+d.Name }

func virtio(name string, change ...func(*vmi.Disk)) vmi.Disk {
	d := vmi.Disk{Name: name, Disk: &vmi.DiskTarget{Bus: vmi.DiskBusVirtio}}
	for _, c := range change {
		c(&d)
	}
	return d
}

func alone(d *vmi.Disk) { d.DedicatedIOThread = new(true) }

func policy(p vmi.DiskErrorPolicy) func(*vmi.Disk) {
	return func(d *vmi.Disk) { d.ErrorPolicy = &p }
}

func cached(c vmi.DiskCache, io vmi.DiskIO) func(*vmi.Disk) {
	return func(d *vmi.Disk) { d.Cache, d.IO = c, io }
}

func custom(logical, physical uint, discard *uint) *vmi.BlockSize {
	return &vmi.BlockSize{Custom: &vmi.CustomBlockSize{Logical: logical, Physical: physical, DiscardGranularity: discard}}
}

func drive(name string, bus vmi.DiskBus, tray vmi.TrayState) vmi.Disk {
	return vmi.Disk{Name: name, CDRom: &vmi.CDRomTarget{Bus: bus, Tray: tray}}
}

func TestADiskHasWhatIsInTheSpec(t *testing.T) {
	drives := instance(withDisks(drive("full", "", ""), drive("empty", vmi.DiskBusSATA, vmi.TrayOpen), drive("scsi", vmi.DiskBusSCSI, vmi.TrayClosed), drive("usb", vmi.DiskBusUSB, "")))
	for name, tt := range map[string]struct {
		vmi  *vmi.VirtualMachineInstance
		host []func(*Host)
	}{
		"cdrom": {drives, []func(*Host){withoutVolume(drives, "empty")}},
		"lun": {instance(withDisks(vmi.Disk{Name: "written", LUN: &vmi.LunTarget{Bus: vmi.DiskBusSCSI}}, vmi.Disk{Name: "read", LUN: &vmi.LunTarget{Bus: vmi.DiskBusSCSI, ReadOnly: true}})),
			[]func(*Host){changed(inDevice, "written", "read")}},
		"usb": {vmi: instance(withDisks(vmi.Disk{Name: "stick", Disk: &vmi.DiskTarget{Bus: vmi.DiskBusUSB}, Serial: "SN-1"}))},
		"read-only": {vmi: instance(withDisks(virtio("a", func(d *vmi.Disk) { d.Disk.ReadOnly = true }),
			vmi.Disk{Name: "b", Disk: &vmi.DiskTarget{Bus: vmi.DiskBusSCSI, ReadOnly: true}}))},
		"cache": {instance(withDisks(virtio("none", cached(vmi.DiskCacheNone, "")), virtio("writethrough", cached(vmi.DiskCacheWriteThrough, "")), virtio("writeback", cached(vmi.DiskCacheWriteBack, vmi.DiskIOThreads)),
			virtio("native", cached("", vmi.DiskIONative)), virtio("threads", cached("", vmi.DiskIOThreads)), virtio("cached-device", cached(vmi.DiskCacheWriteBack, "")))),
			[]func(*Host){changed(inDevice, "threads", "cached-device")}},
		"error-policy": {vmi: instance(withDisks(virtio("stop", policy(vmi.DiskErrorPolicyStop)), virtio("ignore", policy(vmi.DiskErrorPolicyIgnore)), virtio("report", policy(vmi.DiskErrorPolicyReport)), virtio("enospace", policy(vmi.DiskErrorPolicyENOSPACE))))},
		"block-size": {instance(withDisks(
			virtio("custom", func(d *vmi.Disk) { d.BlockSize = custom(4096, 8192, nil) }),
			virtio("discard", func(d *vmi.Disk) { d.BlockSize = custom(512, 4096, new(uint(65536))) }),
			virtio("matched", func(d *vmi.Disk) { d.BlockSize = &vmi.BlockSize{MatchVolume: &vmi.FeatureState{}} }),
			virtio("not-matched", func(d *vmi.Disk) { d.BlockSize = &vmi.BlockSize{MatchVolume: &vmi.FeatureState{Enabled: new(false)}} }),
			vmi.Disk{Name: "sata", BlockSize: &vmi.BlockSize{MatchVolume: &vmi.FeatureState{Enabled: new(true)}}},
			virtio("odd", func(d *vmi.Disk) { d.BlockSize = &vmi.BlockSize{MatchVolume: &vmi.FeatureState{}} }),
		)), []func(*Host){changed(func(d *Disk) {
			d.Blocks = storage.Blocks{LogicalBytes: 4096, PhysicalBytes: 16384, DiscardBytes: 65536}
		}, "custom", "discard", "matched", "not-matched", "sata"), changed(func(d *Disk) {
			d.Blocks = storage.Blocks{LogicalBytes: 1 << 20, PhysicalBytes: 9 << 20, DiscardBytes: 1000}
		}, "odd")}},
		"shareable":    {vmi: instance(withDisks(virtio("shared", func(d *vmi.Disk) { d.Shareable = new(true) }), virtio("alone", func(d *vmi.Disk) { d.Shareable = new(false) })))},
		"preallocated": {instance(withDisks(virtio("a"))), []func(*Host){changed(func(d *Disk) { d.Preallocated = true }, "a")}},
		"block-multi-queue": {vmi: instance(withDisks(virtio("a"), on(vmi.DiskBusSCSI, "b")), func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.CPU, v.Spec.Domain.Devices.BlockMultiQueue = &vmi.CPU{Cores: 3, Sockets: 2}, new(true)
		})},
		"io-threads": {vmi: instance(withDisks(virtio("a"), virtio("own", alone), on(vmi.DiskBusSATA, "b"), virtio("c")), func(v *vmi.VirtualMachineInstance) {
			v.Spec.Domain.IOThreadsPolicy = vmi.IOThreadsAuto
		})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := Build(tt.vmi, host(tt.vmi, tt.host...))
			require.NoError(t, err)
			xml, err := d.Marshal()
			require.NoError(t, err)
			golden.Equal(t, filepath.Join("testdata", "disk-"+name+".xml"), []byte(xml+"\n"))
		})
	}
}

func TestADiskThatItsVolumeCannotBeIsRefusedWithTheWayOut(t *testing.T) {
	t.Parallel()
	indirect := changed(func(d *Disk) { d.DirectIO = false }, "a")
	overlaid := changed(func(d *Disk) { d.Format = storage.QCOW2 }, "a")
	for name, tt := range map[string]struct {
		disk vmi.Disk
		host []func(*Host)
		want string
	}{
		"no direct I/O":                 {virtio("a", cached(vmi.DiskCacheNone, "")), []func(*Host){indirect}, "disk a asks for cache none, and its volume, /disks/a.raw, cannot be opened past the page cache: leave cache out, or choose"},
		"native I/O with a cache":       {virtio("a", cached(vmi.DiskCacheWriteBack, vmi.DiskIONative)), nil, "disk a asks for io native, which works with cache none only: leave io out, or choose threads"},
		"native I/O without direct I/O": {virtio("a", cached("", vmi.DiskIONative)), []func(*Host){indirect}, "disk a asks for io native"},
		"shared and cached":             {virtio("a", cached(vmi.DiskCacheWriteThrough, ""), func(d *vmi.Disk) { d.Shareable = new(true) }), nil, "disk a is shareable, which needs cache none"},
		"shared and in qcow2":           {virtio("a", func(d *vmi.Disk) { d.Shareable = new(true) }), []func(*Host){overlaid}, "disk a is shareable, and its volume is in format qcow2, which has one writer"},
		"large blocks on sata":          {vmi.Disk{Name: "a", BlockSize: custom(4096, 4096, nil)}, nil, "disk a has logical blocks of 4096 bytes, and on the bus sata they have 512"},
		"large discards on sata":        {vmi.Disk{Name: "a", BlockSize: custom(512, 512, new(uint(4096)))}, nil, "disk a has a discardGranularity of 4096 bytes, and on the bus sata it is 512"},
		"read-only on sata":             {vmi.Disk{Name: "a", Disk: &vmi.DiskTarget{ReadOnly: true}}, nil, "disk a is read-only, which disks on the bus sata cannot be"},
		"a drive on virtio":             {drive("a", vmi.DiskBusVirtio, ""), nil, "disk a is a CD-ROM drive on the bus virtio, which has none: use sata"},
		"an empty drive on usb":         {drive("gone", vmi.DiskBusUSB, ""), nil, "disk gone is a drive on the bus usb without a volume"},
		"a lun on sata":                 {vmi.Disk{Name: "a", LUN: &vmi.LunTarget{Bus: vmi.DiskBusSATA}}, []func(*Host){changed(inDevice, "a")}, "disk a is a lun on the bus sata, and only those on scsi take SCSI commands: set lun.bus to scsi"},
		"a lun in a file":               {vmi.Disk{Name: "a", LUN: &vmi.LunTarget{Bus: vmi.DiskBusSCSI}}, nil, "disk a is a lun, and /disks/a.raw is no block device: use a claim in block mode"},
		"a lun with a serial number":    {vmi.Disk{Name: "a", Serial: "SN", LUN: &vmi.LunTarget{Bus: vmi.DiskBusSCSI}}, []func(*Host){changed(inDevice, "a")}, "disk a is a lun with a serial number, and a guest sees that of the device: leave serial out"},
		"a lun with a block size":       {vmi.Disk{Name: "a", BlockSize: custom(512, 512, nil), LUN: &vmi.LunTarget{Bus: vmi.DiskBusSCSI}}, []func(*Host){changed(inDevice, "a")}, "disk a is a lun with a block size, and a guest sees that of the device: leave blockSize out"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := instance(withDisks(tt.disk))
			if tt.disk.Name == "gone" {
				tt.host = append(tt.host, withoutVolume(v, "gone"))
			}
			_, err := Build(v, host(v, tt.host...))
			require.ErrorIs(t, err, vmi.ErrInvalid)
			require.ErrorContains(t, err, "spec.domain.devices.disks[0]: "+tt.want)
		})
	}
}

func TestADriveWithAVolumeIsNotEmptyBecauseTheAttachmentIsMissing(t *testing.T) {
	t.Parallel()
	v := instance(withDisks(drive("a", "", "")))
	_, err := Build(v, host(v, func(h *Host) { h.Disks = nil }))
	require.ErrorContains(t, err, "disk a has no attachment")
}
