package libvirt_test

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
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
	require.NoError(t, d.BlockCopy(t.Context(), name, "vda", to(first), 0))
	events.has(libvirt.Event{Domain: name, Kind: libvirt.BlockJobChanged, Path: root, Job: libvirt.JobReady})
	require.NoError(t, d.BlockAbort(t.Context(), name, "vda"))
	events.has(libvirt.Event{Domain: name, Kind: libvirt.BlockJobChanged, Path: root, Job: libvirt.JobAborted})
	require.Equal(t, []string{root}, g.files("vda"))

	events.forget()
	require.NoError(t, d.BlockCopy(t.Context(), name, "vda", to(second), 0))
	events.has(libvirt.Event{Domain: name, Kind: libvirt.BlockJobChanged, Path: root, Job: libvirt.JobReady})
	require.NoError(t, d.BlockPivot(t.Context(), name, "vda"))
	require.Equal(t, []string{second}, g.files("vda"))
	out, err := exec.Command("cmp", root, second).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// overlay makes an overlay over a file with this content, and is the disk vdb on it, as XML.
func (d daemon) overlay(content []byte) (base, over, disk string) {
	d.Helper()
	base, over = d.file("base.img", content), d.dir+"/over.qcow2"
	out, err := exec.Command("qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", base, over).CombinedOutput()
	require.NoError(d, err, "%s", out)
	require.NoError(d, os.Chmod(over, 0o666))
	return base, over, `<disk type="file" device="disk"><driver name="qemu" type="qcow2"/><source file="` + over + `"/>
		<backingStore type="file"><format type="raw"/><source file="` + base + `"/><backingStore/></backingStore>
		<target dev="vdb" bus="virtio"/><boot order="2"/></disk>`
}

func TestAnOverlayIsCommittedWhileTheGuestUsesIt(t *testing.T) {
	d := newDaemon(t)
	base, over, disk := d.overlay(make([]byte, 16<<20))
	events := d.events()
	g := d.start(disk)
	require.Equal(t, []string{over, base}, g.files("vdb"))
	require.NoError(t, d.BlockCommit(t.Context(), name, "vdb", 0))
	events.has(libvirt.Event{Domain: name, Kind: libvirt.BlockJobChanged, Path: over, Job: libvirt.JobReady})
	require.NoError(t, d.BlockPivot(t.Context(), name, "vdb"))
	require.Equal(t, []string{base}, g.files("vdb"))
	g.types("w")
	g.says("disk written", 1)
	require.ErrorContains(t, d.BlockPivot(t.Context(), name, "vdb"), "end the job of disk vdb of domain default_vm: ")
}

// full is content that no job leaves out, since it is not zero.
func full(bytes int) []byte {
	b := make([]byte, bytes)
	for i := range b {
		b[i] = byte(i%251) + 1
	}
	return b
}

func TestABlockJobIsSeenLimitedAndAborted(t *testing.T) {
	const size, slow = 32 << 20, 1 << 20
	d := newDaemon(t)
	base, over, disk := d.overlay(full(size))
	copied := d.file("copy.img", make([]byte, size))
	events := d.events()
	g := d.start(disk)
	to := &libvirtxml.DomainDisk{}
	require.NoError(t, to.Unmarshal(`<disk type="file"><driver name="qemu" type="raw"/><source file="`+copied+`"/><target dev="vdb"/></disk>`))
	for what, start := range map[string]func() error{
		"a copy": func() error { return d.BlockCopy(t.Context(), name, "vdb", to, slow) },
		"a pull": func() error { return d.BlockPull(t.Context(), name, "vdb", slow) },
	} {
		require.NoError(t, start(), what)
		d.until(what+" is under way", func() error {
			j, err := d.BlockJob(t.Context(), name, "vdb")
			if err == nil && j.DoneBytes == 0 {
				err = errors.New("nothing is done")
			}
			require.True(t, j.TotalBytes == 0 || j == libvirt.BlockJob{DoneBytes: j.DoneBytes, TotalBytes: size, Rate: slow}, "%s: %+v", what, j)
			require.Less(t, j.DoneBytes, int64(size), what)
			return err
		})
		require.NoError(t, d.BlockAbort(t.Context(), name, "vdb"), what)
		events.has(libvirt.Event{Domain: name, Kind: libvirt.BlockJobChanged, Path: over, Job: libvirt.JobAborted})
		events.forget()
		j, err := d.BlockJob(t.Context(), name, "vdb")
		require.NoError(t, err)
		require.Equal(t, libvirt.BlockJob{}, j, "there is none")
		require.Equal(t, []string{over, base}, g.files("vdb"))
	}

	require.NoError(t, d.BlockPull(t.Context(), name, "vdb", slow))
	require.NoError(t, d.SetBlockRate(t.Context(), name, "vdb", 0))
	events.has(libvirt.Event{Domain: name, Kind: libvirt.BlockJobChanged, Path: over, Job: libvirt.JobCompleted})
	require.Equal(t, []string{over}, g.files("vdb"), "the overlay is the whole disk")
	require.ErrorContains(t, d.SetBlockRate(t.Context(), name, "vdb", 1), "set the rate of the job of disk vdb of domain default_vm: ")
	require.ErrorContains(t, d.BlockPull(t.Context(), name, "vdx", 0), "pull disk vdx of domain default_vm: ")
}
