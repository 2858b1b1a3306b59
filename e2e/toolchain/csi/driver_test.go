package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// driver is a controller and a node with a folder of the test.
func driver(t *testing.T) (*controller, node) {
	t.Helper()
	if os.Geteuid() != 0 {
		require.Empty(t, os.Getenv("CI"), "CI is root")
		t.Skip("loop devices need root")
	}
	c := &controller{dir: t.TempDir()}
	require.NoError(t, c.prepare())
	return c, node{name: "n1", volumes: c.dir}
}

const mib = 1 << 20

func mountCapability() *csi.VolumeCapability {
	return &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}}}
}

func blockCapability() *csi.VolumeCapability {
	return &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}}
}

// create makes a volume that is removed when the test ends.
func create(t *testing.T, c *controller, name string, size int64, v *csi.VolumeCapability, from *csi.VolumeContentSource) *csi.Volume {
	t.Helper()
	made, err := c.CreateVolume(t.Context(), &csi.CreateVolumeRequest{
		Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: size}, VolumeCapabilities: []*csi.VolumeCapability{v}, VolumeContentSource: from,
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := c.DeleteVolume(context.Background(), &csi.DeleteVolumeRequest{VolumeId: made.Volume.VolumeId})
		require.NoError(t, err)
	})
	return made.Volume
}

// publish shows a volume at a path, and hides it when the test ends.
func publish(t *testing.T, n node, v *csi.Volume, c *csi.VolumeCapability, path string, readOnly bool) {
	t.Helper()
	for range 2 { // the kubelet repeats calls
		_, err := n.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{
			VolumeId: v.VolumeId, TargetPath: path, VolumeCapability: c, VolumeContext: v.VolumeContext, Readonly: readOnly,
		})
		require.NoError(t, err)
	}
	t.Cleanup(func() { unpublish(t, n, v, path) })
}

func unpublish(t *testing.T, n node, v *csi.Volume, path string) {
	t.Helper()
	_, err := n.NodeUnpublishVolume(context.Background(), &csi.NodeUnpublishVolumeRequest{VolumeId: v.VolumeId, TargetPath: path})
	require.NoError(t, err)
	require.NoFileExists(t, path)
}

func space(t *testing.T, path string) int64 {
	t.Helper()
	var s unix.Statfs_t
	require.NoError(t, unix.Statfs(path, &s))
	return int64(s.Bavail) * s.Bsize
}

func TestAVolumeWithAFileSystem(t *testing.T) {
	c, n := driver(t)
	v := create(t, c, "pvc-1", 64*mib, mountCapability(), nil)
	require.Equal(t, v.VolumeContext, create(t, c, "pvc-1", 64*mib, mountCapability(), nil).VolumeContext, "a repeated call makes no second device")
	at := t.TempDir()
	first, second, read := filepath.Join(at, "pod1/mount"), filepath.Join(at, "pod2/mount"), filepath.Join(at, "pod3/mount")
	publish(t, n, v, mountCapability(), first, false)
	require.Greater(t, space(t, first), int64(63*mib))
	require.LessOrEqual(t, space(t, first), int64(64*mib))
	require.NoError(t, os.WriteFile(filepath.Join(first, "disk.img"), []byte("kept"), 0o600))

	t.Run("two pods see the same files, and one that reads cannot write", func(t *testing.T) {
		publish(t, n, v, mountCapability(), second, false)
		publish(t, n, v, mountCapability(), read, true)
		for _, path := range []string{second, read} {
			data, err := os.ReadFile(filepath.Join(path, "disk.img"))
			require.NoError(t, err)
			require.Equal(t, "kept", string(data))
		}
		require.ErrorIs(t, os.WriteFile(filepath.Join(read, "x"), nil, 0o600), unix.EROFS)
		require.NoError(t, os.WriteFile(filepath.Join(second, "x"), nil, 0o600))
	})
	t.Run("a snapshot of a volume in use becomes a larger volume", func(t *testing.T) {
		s, err := c.CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{SourceVolumeId: v.VolumeId, Name: "snapshot-1"})
		require.NoError(t, err)
		require.True(t, s.Snapshot.ReadyToUse)
		require.NoError(t, os.WriteFile(filepath.Join(first, "disk.img"), []byte("later"), 0o600), "nothing stays frozen")
		source := &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: "snapshot-1"}}}
		restored := create(t, c, "pvc-2", 128*mib, mountCapability(), source)
		path := filepath.Join(at, "pod4/mount")
		publish(t, n, restored, mountCapability(), path, false)
		data, err := os.ReadFile(filepath.Join(path, "disk.img"))
		require.NoError(t, err)
		require.Equal(t, "kept", string(data))
		require.Greater(t, space(t, path), int64(126*mib))
		require.LessOrEqual(t, space(t, path), int64(128*mib))

		_, err = c.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{SnapshotId: "snapshot-1"})
		require.NoError(t, err)
		_, err = c.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "pvc-4", VolumeContentSource: source})
		require.Equal(t, codes.NotFound, status.Code(err))
	})
	t.Run("it grows while it is used", func(t *testing.T) {
		size := &csi.CapacityRange{RequiredBytes: 256 * mib}
		grown, err := c.ControllerExpandVolume(t.Context(), &csi.ControllerExpandVolumeRequest{VolumeId: v.VolumeId, CapacityRange: size})
		require.NoError(t, err)
		require.True(t, grown.NodeExpansionRequired)
		_, err = n.NodeExpandVolume(t.Context(), &csi.NodeExpandVolumeRequest{VolumeId: v.VolumeId, VolumePath: first, CapacityRange: size})
		require.NoError(t, err)
		require.Greater(t, space(t, first), int64(250*mib))
	})
}

func TestAVolumeInBlockMode(t *testing.T) {
	c, n := driver(t)
	v := create(t, c, "pvc-b", 16*mib, blockCapability(), nil)
	path := filepath.Join(t.TempDir(), "publish/pod")
	publish(t, n, v, blockCapability(), path, false)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	_, err = f.WriteAt([]byte("kept"), 8*mib)
	require.NoError(t, err)

	clone := create(t, c, "pvc-c", 16*mib, blockCapability(), &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
		Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: v.VolumeId},
	}})
	copied, err := os.ReadFile(clone.VolumeContext[deviceKey])
	require.NoError(t, err)
	require.Len(t, copied, 16*mib)
	require.Equal(t, "kept", string(copied[8*mib:8*mib+4]))

	_, err = c.CreateVolume(t.Context(), &csi.CreateVolumeRequest{
		Name: "pvc-d", CapacityRange: &csi.CapacityRange{RequiredBytes: 8 * mib}, VolumeCapabilities: []*csi.VolumeCapability{blockCapability()},
		VolumeContentSource: &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: v.VolumeId}}},
	})
	require.Equal(t, codes.OutOfRange, status.Code(err))

	grown, err := c.ControllerExpandVolume(t.Context(), &csi.ControllerExpandVolumeRequest{VolumeId: v.VolumeId, CapacityRange: &csi.CapacityRange{RequiredBytes: 32 * mib}})
	require.NoError(t, err)
	require.False(t, grown.NodeExpansionRequired)
	end, err := f.Seek(0, 2)
	require.NoError(t, err)
	require.EqualValues(t, 32*mib, end, "seen by who has the device open")
}

func TestAVolumeForOneNodeIsRefusedOnTheSecond(t *testing.T) {
	c, first := driver(t)
	second := node{name: "n2", volumes: c.dir}
	at := t.TempDir()
	for name, v := range map[string]*csi.VolumeCapability{"files": mountCapability(), "device": blockCapability()} {
		t.Run(name, func(t *testing.T) {
			made := create(t, c, "pvc-"+name, 16*mib, v, nil)
			on := func(n node, pod string, mode csi.VolumeCapability_AccessMode_Mode) error {
				v.AccessMode = &csi.VolumeCapability_AccessMode{Mode: mode}
				_, err := n.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{
					VolumeId: made.VolumeId, TargetPath: filepath.Join(at, name, n.name, pod), VolumeCapability: v, VolumeContext: made.VolumeContext,
				})
				return err
			}
			off := func(n node, pod string) {
				_, err := n.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: made.VolumeId, TargetPath: filepath.Join(at, name, n.name, pod)})
				require.NoError(t, err)
			}
			one, many := csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER, csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
			require.NoError(t, on(first, "pod1", one))
			require.NoError(t, on(first, "pod2", one), "a second pod of the same node")
			for range 2 {
				err := on(second, "pod3", one)
				require.Equal(t, codes.FailedPrecondition, status.Code(err))
				require.ErrorContains(t, err, "is in use on node n1")
			}
			off(first, "pod1")
			require.Error(t, on(second, "pod3", one), "the other pod has it")
			off(first, "pod2")
			off(first, "pod2") // the kubelet repeats calls
			require.NoError(t, on(second, "pod3", one))
			require.NoError(t, second.prune())
			require.Error(t, on(first, "pod1", one), "it is still mounted there")
			require.NoError(t, unix.Unmount(filepath.Join(at, name, second.name, "pod3"), 0))
			require.NoError(t, second.prune())
			require.NoError(t, on(first, "pod1", one), "the second node was started anew")
			off(first, "pod1")
			off(second, "pod3")

			require.NoError(t, on(first, "pod1", many))
			require.NoError(t, on(second, "pod3", many), "a claim for many nodes")
			off(first, "pod1")
			off(second, "pod3")
		})
	}
}

func TestAKilledControllerLeavesNothingFrozen(t *testing.T) {
	c, n := driver(t)
	v := create(t, c, "pvc-k", 64*mib, mountCapability(), nil)
	path := filepath.Join(t.TempDir(), "mount")
	publish(t, n, v, mountCapability(), path, false)
	folder := c.copying(v.VolumeId)
	require.NoError(t, os.MkdirAll(folder, 0o700))
	require.NoError(t, unix.Mount(v.VolumeContext[deviceKey], folder, "ext4", 0, ""))
	require.NoError(t, onFolder(folder, fifreeze))
	require.NoError(t, os.MkdirAll(c.copying(newVolume), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(c.copying(newVolume), imageFile), nil, 0o600))
	require.NoError(t, c.prepare())
	left, err := os.ReadDir(c.copying(""))
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, os.WriteFile(filepath.Join(path, "x"), nil, 0o600))
	require.ErrorIs(t, onFolder(path, fithaw), unix.EINVAL, "it is thawed already")
}

func TestIDsAreNamesOfFiles(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", ".", "..", "../x", "a/b", "/etc/passwd", ".hidden"} {
		require.Equal(t, codes.InvalidArgument, status.Code(checkID(id)), id)
	}
	require.NoError(t, checkID("filesystem-pvc-1"))
	for _, device := range []string{"", "/dev/sda", "/dev/loop", "/dev/loop1/../sda"} {
		_, err := deviceIn(map[string]string{deviceKey: device})
		require.Error(t, err, device)
	}
}

func TestACopyHasTheHolesOfItsSource(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	f, err := os.Create(from)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("middle"), 40*mib)
	require.NoError(t, errors.Join(err, f.Truncate(100*mib), f.Close()))
	require.NoError(t, sparseCopy(from, to))
	var s unix.Stat_t
	require.NoError(t, unix.Stat(to, &s))
	require.EqualValues(t, 100*mib, s.Size)
	require.Less(t, s.Blocks*512, int64(mib))
	data, err := os.ReadFile(to)
	require.NoError(t, err)
	require.Equal(t, "middle", strings.Trim(string(data), "\x00"))
}
