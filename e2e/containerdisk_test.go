package e2e

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// demoDisk is the qcow2 file of the demo guest, in a folder of the test.
func demoDisk(t *testing.T) string {
	t.Helper()
	for _, b := range world.built {
		if b.Name != "demo-guest" {
			continue
		}
		img, err := tarball.ImageFromPath(b.Tar, nil)
		require.NoError(t, err)
		files := mutate.Extract(img)
		defer files.Close()
		for in := tar.NewReader(files); ; {
			h, err := in.Next()
			require.NoError(t, err)
			if !strings.HasSuffix(h.Name, ".qcow2") {
				continue
			}
			path := filepath.Join(t.TempDir(), "demo.qcow2")
			f, err := os.Create(path)
			require.NoError(t, err)
			_, err = io.Copy(f, in)
			require.NoError(t, errors.Join(err, f.Close()))
			return path
		}
	}
	t.Fatal("there is no image demo-guest")
	return ""
}

// pack makes an image archive of a disk as users do.
func pack(t *testing.T, reference, disk string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.tar")
	out, err := exec.CommandContext(t.Context(), "go", "-C", "..", "run", "./examples/pack-disk", "-name", reference, "-output", path, disk).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// entry is a file or, if its name ends in a slash, a folder of an image.
type entry struct {
	name    string
	owner   int
	mode    int64
	content string
}

// imageOf makes an image archive of the entries, right or wrong.
func imageOf(t *testing.T, reference string, entries []entry) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := tar.Header{Name: e.name, Uid: e.owner, Gid: e.owner, Mode: e.mode, Size: int64(len(e.content))}
		require.NoError(t, w.WriteHeader(&h))
		_, err := io.WriteString(w, e.content)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
	require.NoError(t, err)
	img, err := mutate.AppendLayers(empty.Image, layer)
	require.NoError(t, err)
	img, err = mutate.ConfigFile(img, &v1.ConfigFile{OS: "linux", Architecture: "amd64", RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{must(layer.DiffID())}}})
	require.NoError(t, err)
	tag, err := name.NewTag(reference)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "image.tar")
	require.NoError(t, tarball.WriteToFile(path, tag, img))
	return path
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// wrongDisks are container disks that no guest can use, and what the VMI says.
var wrongDisks = []struct {
	name    string
	entries []entry
	says    string
}{
	{"no-folder", []entry{{"disk.img", 107, 0o440, "x"}}, "/disk does not exist"},
	{"two-files", []entry{{"disk/", 107, 0o555, ""}, {"disk/a.img", 107, 0o440, "x"}, {"disk/b.img", 107, 0o440, "x"}},
		`the folder /disk must hold exactly one file and holds "a.img", "b.img"`},
	{"a-file-of-another", []entry{{"disk/", 0, 0o755, ""}, {"disk/a.img", 0, 0o600, "x"}},
		"/disk/a.img cannot be read by user 107; it should belong to user and group 107"},
	{"a-folder-of-another", []entry{{"disk/", 0, 0o700, ""}, {"disk/a.img", 107, 0o440, "x"}},
		"/disk cannot be read by user 107; it should belong to user and group 107"},
	{"a-vmdk", []entry{{"disk/", 107, 0o555, ""}, {"disk/a.vmdk", 107, 0o440, "KDMV" + strings.Repeat("\x00", 1020)}},
		"/disk/a.vmdk: the image is in format VMDK; only raw and qcow2 can be used"},
	{"a-backing-file", []entry{{"disk/", 107, 0o555, ""}, {"disk/a.qcow2", 107, 0o440, "QFI\xfb\x00\x00\x00\x02" + "\x00\x00\x00\x00\x00\x00\x00\x48" + "\x00\x00\x00\x0b" +
		"\x00\x00\x00\x10" + strings.Repeat("\x00", 48) + "/etc/passwd" + strings.Repeat("\x00", 1<<16)}},
		"/disk/a.qcow2: the qcow2 image has a backing file; a disk image must be self-contained"},
}

func TestPackedDisksBootAndWrongContainerDisksAreNamed(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	qcow2 := demoDisk(t)
	raw := strings.TrimSuffix(qcow2, ".qcow2") + ".raw"
	out, err := exec.Command(testenv.Program(t, "qemu-img"), "convert", "-O", "raw", qcow2, raw).CombinedOutput()
	require.NoError(t, err, "%s", out)
	const repository = "localhost/podvisor-e2e/"
	right := map[string]string{"packed-qcow2": qcow2, "packed-raw": raw}
	var tars []string
	for name, disk := range right {
		tars = append(tars, pack(t, repository+name+":1", disk))
	}
	for _, w := range wrongDisks {
		tars = append(tars, imageOf(t, repository+w.name+":1", w.entries))
	}
	require.NoError(t, world.cluster.Load(t.Context(), tars...))

	var all []*vmi.VirtualMachineInstance
	start := func(name string) {
		v := vmitest.New(vmitest.WithName(name), vmitest.WithMemory("128Mi"), vmitest.WithContainerDisk("root", repository+name+":1"), vmitest.WithMasquerade("default"))
		v.UID = ""
		all = append(all, s.create(v))
	}
	for name := range right {
		start(name)
	}
	for _, w := range wrongDisks {
		start(w.name)
	}
	for _, w := range wrongDisks {
		eventually(t, long, func() error {
			status := s.get(w.name).Status
			ready := status.Condition(vmi.ConditionReady)
			if status.Phase != vmi.PhaseFailed {
				return fmt.Errorf("%s is %s: %+v", w.name, status.Phase, status.Conditions)
			}
			require.Equal(t, "CannotStart", status.Reason, w.name)
			require.Equal(t, corev1.ConditionFalse, ready.Status)
			require.Contains(t, ready.Message, "volume root, container disk "+repository+w.name+":1: "+w.says)
			return nil
		})
	}
	for name := range right {
		s.awaitConsole(s.awaitPhase(name, vmi.PhaseRunning), ready)
	}
	for _, v := range all {
		s.delete(v.Name)
	}
	for _, v := range all {
		s.awaitGone(v)
	}
}
