package libvirt_test

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/launcher/libvirt"
)

func TestADiskIsMadeLarger(t *testing.T) {
	d := newDaemon(t)
	d.start("")
	require.NoError(t, d.BlockResize(t.Context(), name, "vda", 3<<20))
	info, err := d.BlockSize(t.Context(), name, "vda")
	require.NoError(t, err)
	require.EqualValues(t, 3<<20, info)
	require.ErrorContains(t, d.BlockResize(t.Context(), name, "vdx", 3<<20), "resize disk vdx of domain default_vm: ")
	require.ErrorIs(t, d.BlockResize(t.Context(), "default_other", "vda", 3<<20), libvirt.ErrNotFound)
}

// files are the files that the disks of the guest are, first that on top.
func (g *guest) files(target string) []string {
	g.Helper()
	for _, d := range g.described().Devices.Disks {
		if d.Target.Dev != target {
			continue
		}
		if d.Source == nil || d.Source.File == nil || d.Source.File.File == "" {
			return nil
		}
		all := []string{d.Source.File.File}
		for b := d.BackingStore; b != nil && b.Source != nil && b.Source.File != nil; b = b.BackingStore {
			all = append(all, b.Source.File.File)
		}
		return all
	}
	return nil
}

func TestADiskIsCopiedWhileTheGuestUsesIt(t *testing.T) {
	d := newDaemon(t)
	events := d.events()
	g := d.start("")
	first, second := d.file("first.img", make([]byte, 1<<20)), d.file("second.img", make([]byte, 1<<20))
	root := g.files("vda")[0]
	to := func(path string) *libvirtxml.DomainDisk {
		x := &libvirtxml.DomainDisk{}
		require.NoError(t, x.Unmarshal(`<disk type="file"><driver name="qemu" type="raw"/><source file="`+path+`"/><target dev="vda"/></disk>`))
		return x
	}
	require.NoError(t, d.BlockCopy(t.Context(), name, "vda", to(first)))
	events.has(libvirt.Event{Domain: name, Kind: libvirt.BlockJobChanged, Path: root, Job: libvirt.JobReady})
	require.NoError(t, d.BlockAbort(t.Context(), name, "vda"))
	events.has(libvirt.Event{Domain: name, Kind: libvirt.BlockJobChanged, Path: root, Job: libvirt.JobAborted})
	require.Equal(t, []string{root}, g.files("vda"))

	events.forget()
	require.NoError(t, d.BlockCopy(t.Context(), name, "vda", to(second)))
	events.has(libvirt.Event{Domain: name, Kind: libvirt.BlockJobChanged, Path: root, Job: libvirt.JobReady})
	require.NoError(t, d.BlockPivot(t.Context(), name, "vda"))
	require.Equal(t, []string{second}, g.files("vda"))
	out, err := exec.Command("cmp", root, second).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func TestAnOverlayIsCommittedWhileTheGuestUsesIt(t *testing.T) {
	d := newDaemon(t)
	base, over := d.file("base.img", make([]byte, 16<<20)), d.dir+"/over.qcow2"
	out, err := exec.Command("qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", base, over).CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.Command("chmod", "666", over).CombinedOutput()
	require.NoError(t, err, "%s", out)
	events := d.events()
	g := d.start(`<disk type="file" device="disk"><driver name="qemu" type="qcow2"/><source file="` + over + `"/>
		<backingStore type="file"><format type="raw"/><source file="` + base + `"/><backingStore/></backingStore>
		<target dev="vdb" bus="virtio"/><boot order="2"/></disk>`)
	require.Equal(t, []string{over, base}, g.files("vdb"))
	require.NoError(t, d.BlockCommit(t.Context(), name, "vdb"))
	events.has(libvirt.Event{Domain: name, Kind: libvirt.BlockJobChanged, Path: over, Job: libvirt.JobReady})
	require.NoError(t, d.BlockPivot(t.Context(), name, "vdb"))
	require.Equal(t, []string{base}, g.files("vdb"))
	g.types("w")
	g.says("disk written", 1)
	require.ErrorContains(t, d.BlockPivot(t.Context(), name, "vdb"), "end the job of disk vdb of domain default_vm: ")
}
