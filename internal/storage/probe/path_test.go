package probe_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/storage/probe"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

func TestAFileHasASize(t *testing.T) {
	p := filepath.Join(t.TempDir(), "disk")
	require.NoError(t, os.WriteFile(p, make([]byte, 8192), 0o600))
	got, err := probe.Path(p)
	require.NoError(t, err)
	require.Equal(t, storage.File, got.Kind)
	require.EqualValues(t, 8192, got.SizeBytes)
	require.Zero(t, got.FreeBytes)
}

func TestAMissingPathIsAFact(t *testing.T) {
	got, err := probe.Path(filepath.Join(t.TempDir(), "missing"))
	require.NoError(t, err)
	require.Equal(t, storage.Facts{}, got)
}

func TestADirectoryHasTheFreeSpaceOfItsFileSystem(t *testing.T) {
	testenv.Root(t)
	dir := t.TempDir()
	require.NoError(t, unix.Mount("none", dir, "tmpfs", 0, "size=8M"))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, 0)) })
	got, err := probe.Path(dir)
	require.NoError(t, err)
	require.Equal(t, storage.Facts{Kind: storage.Directory, FreeBytes: 8 << 20}, got)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), make([]byte, 3<<20), 0o600))
	got, err = probe.Path(dir)
	require.NoError(t, err)
	require.EqualValues(t, 5<<20, got.FreeBytes)
}

func TestABlockDeviceHasItsOwnSize(t *testing.T) {
	testenv.Root(t)
	testenv.File(t, "/dev/loop-control")
	losetup := testenv.Program(t, "losetup")
	p := filepath.Join(t.TempDir(), "disk")
	require.NoError(t, os.WriteFile(p, make([]byte, 1<<20), 0o600))
	attach := func(flags ...string) string {
		out, err := exec.Command(losetup, append(flags, "--find", "--show", p)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		device := strings.TrimSpace(string(out))
		t.Cleanup(func() { require.NoError(t, exec.Command(losetup, "--detach", device).Run()) })
		return device
	}
	device := attach()
	got, err := probe.Path(device)
	require.NoError(t, err)
	require.Equal(t, storage.BlockDevice, got.Kind)
	require.EqualValues(t, 1<<20, got.SizeBytes)
	require.EqualValues(t, 512, got.Blocks.LogicalBytes)

	device = attach("--sector-size", "4096")
	got, err = probe.Path(device)
	require.NoError(t, err)
	require.EqualValues(t, 4096, got.Blocks.LogicalBytes)
	require.EqualValues(t, 4096, got.Blocks.PhysicalBytes)
	text, err := os.ReadFile("/sys/block/" + filepath.Base(device) + "/queue/discard_granularity")
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(string(text)), fmt.Sprint(got.Blocks.DiscardBytes))
}

func TestAFileHasTheBlocksOfItsFileSystemAndTheSpaceThatItTakes(t *testing.T) {
	testenv.Root(t)
	dir := t.TempDir()
	require.NoError(t, unix.Mount("none", dir, "tmpfs", 0, "size=8M"))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, 0)) })
	p := filepath.Join(dir, "disk")
	require.NoError(t, os.WriteFile(p, make([]byte, 1<<20), 0o600))
	require.NoError(t, os.Truncate(p, 64<<20))
	got, err := probe.Path(p)
	require.NoError(t, err)
	require.EqualValues(t, 64<<20, got.SizeBytes)
	require.EqualValues(t, 1<<20, got.AllocatedBytes)
	require.Equal(t, storage.Blocks{LogicalBytes: 4096, PhysicalBytes: 4096, DiscardBytes: 4096}, got.Blocks)
}

func TestAFileSystemWithoutDirectIOIsAFact(t *testing.T) {
	testenv.Root(t)
	dir := t.TempDir()
	require.NoError(t, unix.Mount("none", dir, "ramfs", 0, ""))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, 0)) })
	p := filepath.Join(dir, "disk")
	require.NoError(t, os.WriteFile(p, make([]byte, 4096), 0o600))
	got, err := probe.Path(p)
	require.NoError(t, err)
	require.False(t, got.DirectIO)
	require.Equal(t, storage.File, got.Kind)
}

func TestWhatCannotBeADiskIsAnErrorThatNamesThePath(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, p := range []string{fifo, "/dev/null", filepath.Join(file, "below-a-file")} {
		_, err := probe.Path(p)
		require.ErrorContains(t, err, p)
	}
}

func TestAttackALinkInAVolumeIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	require.NoError(t, os.WriteFile(secret, make([]byte, 4096), 0o600))
	for name, make := range map[string]func(path string) error{
		"a link to a file":           func(p string) error { return os.Symlink(secret, p) },
		"a link within the volume":   func(p string) error { return os.Symlink("secret", p) },
		"a link to a device":         func(p string) error { return os.Symlink("/dev/loop0", p) },
		"a link to a process's file": func(p string) error { return os.Symlink("/proc/self/exe", p) },
		"a link to nowhere":          func(p string) error { return os.Symlink("nowhere", p) },
		"a link to itself":           func(p string) error { return os.Symlink(p, p) },
		"a pipe":                     func(p string) error { return unix.Mkfifo(p, 0o600) },
		"a socket":                   func(p string) error { return unix.Mknod(p, unix.S_IFSOCK|0o600, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			p := filepath.Join(t.TempDir(), "disk.img")
			require.NoError(t, make(p))
			_, err := probe.Path(p)
			require.ErrorIs(t, err, vmi.ErrInvalid)
			require.ErrorContains(t, err, p)
		})
	}
}

func ExamplePath() {
	f, _ := os.CreateTemp("", "disk")
	defer os.Remove(f.Name())
	_ = f.Truncate(1 << 20)
	facts, err := probe.Path(f.Name())
	fmt.Println(facts.Kind, facts.SizeBytes, err)
	// Output: file 1048576 <nil>
}

// As of a claim in block mode on a node whose container runtime leaves devices to root.
func TestADeviceOfRootSaysWhatTheNodeLacks(t *testing.T) {
	testenv.Root(t)
	device := testenv.File(t, "/dev/loop0")
	runtime.LockOSThread() // for good: the thread ends with the test
	require.NoError(t, unix.Setfsuid(vmi.RuntimeUID))
	_, err := probe.Path(device)
	require.ErrorIs(t, err, fs.ErrPermission)
	require.ErrorContains(t, err, device+" cannot be opened by user 0")
	require.ErrorContains(t, err, "device_ownership_from_security_context")
}
