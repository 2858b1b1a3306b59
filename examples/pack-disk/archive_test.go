package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	store "github.com/podvisor/podvisor/internal/storage/image"
	"github.com/podvisor/podvisor/storage"
)

// unpacked are the files of a tar, by their names.
func unpacked(t *testing.T, r io.Reader) (map[string][]byte, map[string]*tar.Header) {
	t.Helper()
	content, headers := map[string][]byte{}, map[string]*tar.Header{}
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return content, headers
		}
		require.NoError(t, err)
		require.NotContains(t, headers, h.Name)
		headers[h.Name] = h
		content[h.Name], err = io.ReadAll(in)
		require.NoError(t, err)
	}
}

func decoded[T any](t *testing.T, b []byte) (v T) {
	t.Helper()
	require.NoError(t, json.Unmarshal(b, &v))
	return v
}

func TestTheArchiveIsAnImageWithTheDisk(t *testing.T) {
	path := made(t, "a.qcow2", "-f", "qcow2")
	output := filepath.Join(t.TempDir(), "a.tar")
	status, _, notes := packed("-name", "example.com/disk:1", "-arch", "arm64", "-output", output, path)
	require.Zero(t, status, notes)
	f, err := os.Open(output)
	require.NoError(t, err)
	defer f.Close()
	files, headers := unpacked(t, f)

	// blobOf finds a blob and checks what its descriptor says of it.
	blobOf := func(b blob) []byte {
		t.Helper()
		content, ok := files[b.path()]
		require.True(t, ok, b.path())
		sum := sha256.Sum256(content)
		require.Equal(t, "sha256:"+hex.EncodeToString(sum[:]), b.Digest)
		require.EqualValues(t, len(content), b.Size)
		return content
	}
	require.Equal(t, "1.0.0", decoded[map[string]string](t, files["oci-layout"])["imageLayoutVersion"])
	index := decoded[struct{ Manifests []blob }](t, files["index.json"])
	require.Len(t, index.Manifests, 1)
	require.Equal(t, &platform{"arm64", "linux"}, index.Manifests[0].Platform)
	require.Equal(t, map[string]string{"io.containerd.image.name": "example.com/disk:1", "org.opencontainers.image.ref.name": "1"}, index.Manifests[0].Annotations)
	manifest := decoded[struct {
		Config blob
		Layers []blob
	}](t, blobOf(index.Manifests[0]))
	config := decoded[struct {
		Architecture, OS string
		RootFS           struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}](t, blobOf(manifest.Config))
	require.Equal(t, "arm64", config.Architecture)
	require.Len(t, manifest.Layers, 1)
	require.Equal(t, []string{manifest.Layers[0].Digest}, config.RootFS.DiffIDs, "the layer is not compressed")
	require.Equal(t, []struct {
		Config           string
		RepoTags, Layers []string
	}{{manifest.Config.path(), []string{"example.com/disk:1"}, []string{manifest.Layers[0].path()}}},
		decoded[[]struct {
			Config           string
			RepoTags, Layers []string
		}](t, files["manifest.json"]), "the same image for docker load")
	require.Len(t, files, 6)
	for _, h := range headers {
		require.True(t, h.ModTime.Equal(time.Unix(0, 0)))
	}

	inLayer, owners := unpacked(t, bytes.NewReader(blobOf(manifest.Layers[0])))
	disk, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, map[string][]byte{"disk/": {}, "disk/disk.qcow2": disk}, inLayer)
	for name, mode := range map[string]int64{"disk/": 0o555, "disk/disk.qcow2": 0o440} {
		require.Equal(t, mode, owners[name].Mode)
		require.Equal(t, []int{107, 107}, []int{owners[name].Uid, owners[name].Gid})
		require.Empty(t, owners[name].Uname+owners[name].Gname)
	}

	// The launcher finds it.
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "disk"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "disk/disk.qcow2"), disk, 0o440))
	found, err := store.Inspector{}.ContainerDisk(t.Context(), root, "")
	require.NoError(t, err)
	require.Equal(t, storage.Image{Path: filepath.Join(root, "disk/disk.qcow2"), Format: storage.QCOW2, SizeBytes: 1 << 20}, found)
}

func TestTheSameDiskMakesTheSameArchive(t *testing.T) {
	path := made(t, "a.qcow2", "-f", "qcow2")
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	other := filepath.Join(t.TempDir(), "other.img")
	require.NoError(t, os.WriteFile(other, content, 0o600))
	require.NoError(t, os.Chtimes(other, time.Unix(1, 0), time.Unix(1, 0)))
	var archives [][]byte
	for _, p := range []string{path, other} {
		output := filepath.Join(t.TempDir(), "a.tar")
		status, _, notes := packed("-name", "a:1", "-output", output, p)
		require.Zero(t, status, notes)
		b, err := os.ReadFile(output)
		require.NoError(t, err)
		archives = append(archives, b)
	}
	require.Equal(t, archives[0], archives[1])
}

// endless is a disk of random bytes, another with each reading if it changes.
type endless struct{ changes bool }

func (e endless) ReadAt(b []byte, _ int64) (int, error) {
	if e.changes {
		b[0] = byte(rand.Int())
	}
	return len(b), nil
}

func TestADiskIsNotHeldInMemory(t *testing.T) {
	i := image{reference: reference{"a", "1"}, arch: "amd64", file: "disk.raw", size: 256 << 20, content: endless{}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.NoError(t, i.write(io.Discard))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20))
}

func TestADiskThatChangesOrShrinksIsNotPacked(t *testing.T) {
	i := image{arch: "amd64", file: "disk.raw", size: 1 << 20, content: endless{changes: true}}
	require.ErrorContains(t, i.write(io.Discard), "changes while it is packed")
	i.content = bytes.NewReader(make([]byte, 1000))
	require.ErrorContains(t, i.write(io.Discard), "became shorter")
}

// limited takes some bytes and no more.
type limited struct{ bytes.Buffer }

var errFull = errors.New("full")

func (l *limited) Write(b []byte) (int, error) {
	if l.Len() > 1<<20 {
		return 0, errFull
	}
	return l.Buffer.Write(b)
}

func TestADiskMayBeLargerThanAnOldTarAllows(t *testing.T) {
	i := image{arch: "amd64", file: "disk.raw", size: 10 << 30, content: endless{}}
	var out limited
	_, err := i.layer(&out)
	require.ErrorIs(t, err, errFull)
	in := tar.NewReader(&out)
	for range 2 {
		h, err := in.Next()
		require.NoError(t, err)
		if h.Name == "disk/disk.raw" {
			require.EqualValues(t, 10<<30, h.Size)
			return
		}
	}
	t.Fatal("the disk is missing")
}
