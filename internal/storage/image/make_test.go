package image

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/storage/cloudinit"
)

// info is the output of qemu-img info.
func info(t *testing.T, path string) map[string]any {
	t.Helper()
	out, err := exec.Command(testenv.Program(t, "qemu-img"), "info", "--output=json", path).Output()
	require.NoError(t, err)
	var got map[string]any
	require.NoError(t, json.Unmarshal(out, &got))
	return got
}

func TestQemuImgIsThatOfTheLaunchersImage(t *testing.T) {
	root := testenv.LauncherRoot(t)
	if root == "" {
		t.Skip("LAUNCHER_ROOT names no image: qemu-img is the host's")
	}
	testenv.Root(t)
	want, err := Checksum(t.Context(), filepath.Join(root, "usr/bin/qemu-img"))
	require.NoError(t, err)
	got, err := Checksum(t.Context(), testenv.Program(t, "qemu-img"))
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestMakeMakesAnOverlayOverEitherFormat(t *testing.T) {
	qemuImg := testenv.Program(t, "qemu-img")
	for _, format := range []storage.Format{storage.Raw, storage.QCOW2} {
		dir := t.TempDir()
		base := filepath.Join(dir, "disk", "base, with=odd:name")
		require.NoError(t, os.Mkdir(filepath.Dir(base), 0o755))
		require.NoError(t, exec.Command(qemuImg, "create", "-q", "-f", string(format), base, "1M").Run())
		i, err := Inspector{}.ContainerDisk(t.Context(), dir, "")
		require.NoError(t, err)
		require.Equal(t, storage.Image{Path: base, Format: format, SizeBytes: 1 << 20}, i)

		over := filepath.Join(dir, "new", "over.qcow2")
		a := storage.Attachment{Name: "root", Path: over, Format: storage.QCOW2, SizeBytes: i.SizeBytes, Source: storage.Overlay{Base: i}}
		require.NoError(t, Make(t.Context(), a))
		require.NoError(t, Make(t.Context(), a), "again")
		got := info(t, over)
		require.Equal(t, "qcow2", got["format"])
		require.EqualValues(t, 1<<20, got["virtual-size"])
		require.Equal(t, base, got["backing-filename"])
		require.Equal(t, string(format), got["backing-filename-format"])
	}
}

func TestMakeMakesAnEmptyDisk(t *testing.T) {
	testenv.Program(t, "qemu-img")
	p := filepath.Join(t.TempDir(), "empty.qcow2")
	require.NoError(t, Make(t.Context(), storage.Attachment{Path: p, Format: storage.QCOW2, SizeBytes: 1 << 30, Source: storage.Blank{}}))
	got := info(t, p)
	require.Equal(t, "qcow2", got["format"])
	require.EqualValues(t, 1<<30, got["virtual-size"])
	require.Nil(t, got["backing-filename"])
}

func TestAnErrorContainsTheOutputOfQemuImg(t *testing.T) {
	testenv.Program(t, "qemu-img")
	a := storage.Attachment{Name: "root", Path: filepath.Join(t.TempDir(), "x"), Format: "nonsense", SizeBytes: 512, Source: storage.Blank{}}
	require.ErrorContains(t, Make(t.Context(), a), "Unknown file format 'nonsense'")

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	a.Format = storage.QCOW2
	require.ErrorIs(t, Make(ended, a), context.Canceled)
}

var seed = storage.Seed{Label: "cidata", Files: []cloudinit.File{
	{Name: "meta-data", Content: []byte("instance-id: x\n")},
	{Name: "user-data", Content: make([]byte, 5000)},
	{Name: "network-config", Content: nil},
	{Name: "openstack/latest/user_data", Content: []byte("#!/bin/sh")},
}}

func TestASeedIsAnISO9660FileSystem(t *testing.T) {
	dir := t.TempDir()
	p := filepath.Join(dir, "deep", "noCloud.iso")
	require.NoError(t, Make(t.Context(), storage.Attachment{Path: p, Format: storage.Raw, Source: seed}))
	stat, err := os.Stat(p)
	require.NoError(t, err)
	require.Zero(t, stat.Size()%4096)
	left, err := os.ReadDir(filepath.Dir(p))
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing else is left behind")

	label, err := exec.Command(testenv.Program(t, "blkid"), "-p", "-o", "value", "-s", "LABEL", p).Output()
	require.NoError(t, err)
	require.Equal(t, "cidata\n", string(label), "the label by which a guest finds it")

	b, err := file.OpenFromPath(p, true)
	require.NoError(t, err)
	defer b.Close()
	fs, err := iso9660.Read(b, stat.Size(), 0, 2048)
	require.NoError(t, err)
	for _, f := range seed.Files {
		got, err := fs.ReadFile(f.Name)
		require.NoError(t, err)
		require.Equal(t, len(f.Content), len(got), f.Name)
	}
}

func TestCopyCopiesTheImageOfAContainerDisk(t *testing.T) {
	root, to := tree(t, map[string]string{"b/c.img": ""}), t.TempDir()
	f, err := os.OpenFile(filepath.Join(root, "b/c.img"), os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("data"), 64<<20)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(256<<20))
	require.NoError(t, f.Close())

	require.NoError(t, Copy(root, "/b/c.img", to))
	require.NoError(t, Copy(root, "/b/c.img", to), "again")
	i, err := Inspector{}.ContainerDisk(t.Context(), to, "/b/c.img")
	require.NoError(t, err)
	require.Equal(t, storage.Image{Path: filepath.Join(to, "disk/c.img"), Format: storage.Raw, SizeBytes: 256 << 20}, i)
	_, err = Inspector{}.ContainerDisk(t.Context(), to, "")
	require.NoError(t, err, "and it is the only file")

	var s unix.Stat_t
	require.NoError(t, unix.Stat(i.Path, &s))
	require.Less(t, s.Blocks*512, int64(1<<20), "the holes are not copied")
	require.EqualValues(t, 0o440, s.Mode&0o777)
	got, err := os.Open(i.Path)
	require.NoError(t, err)
	defer got.Close()
	b := make([]byte, 4)
	_, err = got.ReadAt(b, 64<<20)
	require.NoError(t, err)
	require.Equal(t, "data", string(b))
}

func TestACopyThatFailsLeavesNoFile(t *testing.T) {
	to := t.TempDir()
	require.Error(t, Copy(tree(t, map[string]string{"disk/a": "->/etc/passwd"}), "", to))
	left, err := os.ReadDir(to)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestInstallCopiesTheProgram(t *testing.T) {
	p := filepath.Join(t.TempDir(), "virt-launcher")
	require.NoError(t, Install(p))
	got, err := os.Stat(p)
	require.NoError(t, err)
	require.EqualValues(t, 0o755, got.Mode())
	own, err := os.Stat("/proc/self/exe")
	require.NoError(t, err)
	require.Equal(t, own.Size(), got.Size())
}

func TestASeedThatCannotBeMadeGivesTheSameErrorEachTime(t *testing.T) {
	a := storage.Attachment{Name: "seed", Path: filepath.Join(t.TempDir(), "seed.iso"), Source: storage.Seed{
		Label: "cidata", Files: []cloudinit.File{{Name: strings.Repeat("x", 300)}},
	}}
	first := Make(t.Context(), a)
	require.Error(t, first)
	require.EqualError(t, Make(t.Context(), a), first.Error())
	left, err := os.ReadDir(filepath.Dir(a.Path))
	require.NoError(t, err)
	require.Empty(t, left)

	// A launcher that was killed left its files.
	require.NoError(t, os.MkdirAll(a.Path+".new/tree/old", 0o755))
	a.Source = seed
	require.NoError(t, Make(t.Context(), a))
	left, err = os.ReadDir(filepath.Dir(a.Path))
	require.NoError(t, err)
	require.Len(t, left, 1)
}
