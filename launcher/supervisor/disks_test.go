package supervisor

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/internal/storage/image"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

// podRoot is the root of a pod whose container disk root holds these files.
func podRoot(t *testing.T, files map[string][]byte) string {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, vmi.ContainerDisksDir, "root", "disk")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o644))
	}
	return root
}

func TestTheDisksOfTheSpecAreMadeAndExamined(t *testing.T) {
	testenv.Program(t, "qemu-img")
	root := podRoot(t, bootable())
	v := instance()
	got, err := makeDisks(t.Context(), v, place{root: root})
	require.NoError(t, err)
	require.Len(t, got, 3)
	require.Equal(t, storage.Overlay{Base: storage.Image{
		Path: filepath.Join(root, vmi.ContainerDisksDir, "root/disk/guest.img"), Format: storage.Raw, SizeBytes: 1 << 20,
	}}, got["root"].Source)
	for name, size := range map[string]int64{"root": 1 << 20, "empty": 1 << 30} {
		require.Equal(t, size, got[name].SizeBytes, name)
	}
	seed, err := os.Stat(got["seed"].Path)
	require.NoError(t, err)
	require.Equal(t, seed.Size(), got["seed"].SizeBytes, "known when it is made")

	again, err := makeDisks(t.Context(), v, place{root: root})
	require.NoError(t, err)
	require.Equal(t, got, again)

	require.Equal(t, []protocol.Disk{
		{Name: "root", Target: "vda", SizeBytes: 1 << 20},
		{Name: "seed", Target: "vdb", SizeBytes: seed.Size()},
		{Name: "empty", Target: "vdc", SizeBytes: 1 << 30},
	}, disksOf(v, domain.Host{Disks: got}))
}

// mountSecret puts the keys of a Secret where the kubelet mounts it.
func mountSecret(t *testing.T, root string, v *vmi.VirtualMachineInstance, keys map[string]string) {
	t.Helper()
	part, err := volume.Pod(v.Spec.Volumes, volume.Cluster{})
	require.NoError(t, err)
	for _, m := range part.Mounts {
		if m.Name != "seed" {
			continue
		}
		require.NoError(t, os.MkdirAll(filepath.Join(root, m.MountPath), 0o755))
		for key, content := range keys {
			require.NoError(t, os.WriteFile(filepath.Join(root, m.MountPath, key), []byte(content), 0o440))
		}
		return
	}
	t.Fatal("the pod mounts no Secret")
}

func TestTheDataOfASecretIsOnTheDiskThatIsMade(t *testing.T) {
	testenv.Program(t, "qemu-img")
	root, v := podRoot(t, bootable()), instance()
	v.Spec.Volumes[1].VolumeSource = vmi.VolumeSource{CloudInitConfigDrive: &vmi.CloudInitConfigDrive{
		UserDataSecretRef: &corev1.LocalObjectReference{Name: "users"}, NetworkData: `{"links":[]}`,
	}}
	mountSecret(t, root, v, map[string]string{"other": "x"})
	_, err := makeDisks(t.Context(), v, place{root: root})
	require.ErrorContains(t, err, `volume seed: secret "users" has no key userdata (or userData)`)
	require.NotErrorIs(t, err, vmi.ErrInvalid, "the key may be added")

	user := strings.Repeat("# a long script\n", 5000)
	mountSecret(t, root, v, map[string]string{"userData": user})
	got, err := makeDisks(t.Context(), v, place{root: root})
	require.NoError(t, err)
	b, err := file.OpenFromPath(got["seed"].Path, true)
	require.NoError(t, err)
	defer b.Close()
	drive, err := iso9660.Read(b, got["seed"].SizeBytes, 0, 2048)
	require.NoError(t, err)
	require.Equal(t, "config-2", strings.TrimRight(drive.Label(), " \x00"))
	for name, want := range map[string]string{
		"user_data": user, "network_data.json": `{"links":[]}`,
		"meta_data.json": `{"hostname":"vm","instance_id":"vm.default","local_hostname":"vm","uuid":"6f1c2a3e-9a43-4f0e-8d2b-0c54a7b1e9d2"}`,
	} {
		content, err := drive.ReadFile("openstack/latest/" + name)
		require.NoError(t, err, name)
		require.Equal(t, want, string(content), name)
	}
}

func TestADiskThatCannotBeMadeNamesItsVolumeAndKeepsItsClass(t *testing.T) {
	testenv.Program(t, "qemu-img")
	for name, tt := range map[string]struct {
		files   map[string][]byte
		change  func(root string, v *vmi.VirtualMachineInstance)
		says    string
		invalid bool
		is      error
	}{
		"a container disk with two files": {files: map[string][]byte{"a": {1}, "b": {1}},
			says: "volume root, container disk example/guest:1: the folder /disk must hold exactly one file", invalid: true},
		"a container disk that is not mounted": {change: func(root string, _ *vmi.VirtualMachineInstance) {
			_ = os.RemoveAll(filepath.Join(root, vmi.ContainerDisksDir))
		},
			says: "volume root, container disk example/guest:1: open ", is: fs.ErrNotExist},
		"a capacity of nothing": {files: bootable(), change: func(_ string, v *vmi.VirtualMachineInstance) {
			v.Spec.Volumes[2].EmptyDisk = &vmi.EmptyDisk{Capacity: resource.Quantity{}}
		}, says: "volume empty: capacity 0", invalid: true},
		"a folder that is a file": {files: bootable(), change: func(root string, _ *vmi.VirtualMachineInstance) {
			_ = os.WriteFile(filepath.Join(root, vmi.EphemeralDisksDir), nil, 0o600)
		}, says: "make disk of volume root at "},
	} {
		t.Run(name, func(t *testing.T) {
			root, v := podRoot(t, tt.files), instance()
			if tt.change != nil {
				tt.change(root, v)
			}
			_, err := makeDisks(t.Context(), v, place{root: root})
			require.ErrorContains(t, err, tt.says)
			if tt.invalid {
				require.ErrorIs(t, err, vmi.ErrInvalid)
			} else {
				require.NotErrorIs(t, err, vmi.ErrInvalid)
			}
			if tt.is != nil {
				require.ErrorIs(t, err, tt.is)
			}
		})
	}
}

func TestWhatIsAtAPathIsObserved(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "disk.img")
	require.NoError(t, os.WriteFile(file, make([]byte, 4096), 0o600))
	missing := filepath.Join(dir, "missing")
	node := volume.Node{Paths: map[string]storage.Facts{}}
	require.NoError(t, place{}.add(t.Context(), volume.Observation{Volume: "data", Paths: []string{dir, file, missing}}, node))
	require.Equal(t, storage.Directory, node.Paths[dir].Kind)
	require.Positive(t, node.Paths[dir].FreeBytes)
	require.EqualValues(t, 4096, node.Paths[file].SizeBytes)
	require.Equal(t, storage.Facts{}, node.Paths[missing])
	require.Contains(t, node.Paths, missing)

	err := place{}.add(t.Context(), volume.Observation{Volume: "data", Paths: []string{"/dev/null"}}, node)
	require.ErrorContains(t, err, "volume data: /dev/null is neither")
}

func TestADiskIsAFileOrADevice(t *testing.T) {
	dir := t.TempDir()
	for path, says := range map[string]string{dir: "is a directory", filepath.Join(dir, "missing"): "is missing"} {
		_, err := examine([]storage.Attachment{{Name: "data", Path: path}})
		require.ErrorContains(t, err, "examine disk of volume data: "+path+" "+says)
	}
}

func TestAFileOfAClaimIsMadeOnceAndKept(t *testing.T) {
	a := storage.Attachment{Name: "data", Path: filepath.Join(t.TempDir(), "disk.img"), Format: storage.Raw, SizeBytes: 1 << 20, Source: storage.Persistent{}}
	require.NoError(t, place{}.makeFiles(t.Context(), []storage.Attachment{a}))
	require.NoError(t, os.WriteFile(a.Path, []byte("of the guest"), 0o600))
	require.NoError(t, place{}.makeFiles(t.Context(), []storage.Attachment{a}))
	content, err := os.ReadFile(a.Path)
	require.NoError(t, err)
	require.Equal(t, "of the guest", string(content))
}

func TestAttackADiskBeyondAnyNodeIsRefusedBeforeAProgramRuns(t *testing.T) {
	for _, capacity := range []string{"8Ei", "9223372036854775807", "1125899906842625"} {
		root, v := podRoot(t, bootable()), instance()
		v.Spec.Volumes[2].EmptyDisk.Capacity = resource.MustParse(capacity)
		_, err := makeDisks(t.Context(), v, place{root: root})
		require.ErrorIs(t, err, vmi.ErrInvalid, capacity)
		require.ErrorContains(t, err, "volume empty: capacity")
	}
	testenv.Program(t, "qemu-img")
	v := instance()
	v.Spec.Volumes[2].EmptyDisk.Capacity = resource.MustParse("1Pi")
	_, err := makeDisks(t.Context(), v, place{root: podRoot(t, bootable())})
	require.NoError(t, err, "the largest one")
}

func TestAnImageWhoseInspectionFailsNamesVolumeAndImage(t *testing.T) {
	p := place{root: podRoot(t, bootable()), inspector: image.Inspector{Command: []string{"/bin/false"}}}
	_, err := makeDisks(t.Context(), instance(), p)
	require.EqualError(t, err, `volume root, container disk `+instance().Spec.Volumes[0].ContainerDisk.Image+
		`: /disk/guest.img: inspect the image in a process of its own: it ended without an answer within its limits of 128 MiB of memory and 5 s of processor time: exit status 1: ""`)
	require.NotErrorIs(t, err, vmi.ErrInvalid, "it is tried again")
}

func TestTheMemoryOfAnInspectionIsTheClusters(t *testing.T) {
	p := place{
		root: podRoot(t, bootable()), settings: config.Launcher{InspectionMemoryBytes: 100 << 20},
		inspector: image.Inspector{Command: []string{"/bin/sh", "-c", `printf '{"fault":"%s bytes"}' "$0"`}},
	}
	_, err := makeDisks(t.Context(), instance(), p)
	require.ErrorContains(t, err, "/disk/guest.img: 104857600 bytes")
}

// A start does not do again what was done before it was asked for, and inspects what it
// alone knows of.
func TestContainerDisksArePreparedBeforeTheyAreAskedFor(t *testing.T) {
	testenv.Program(t, "qemu-img")
	root := podRoot(t, bootable())
	s := &Supervisor{config: Config{Root: root}}
	done, err := s.prepareDisks(t.Context())
	require.NoError(t, err)
	overlay := filepath.Join(root, vmi.EphemeralDisksDir, "disk-data/root/disk.qcow2")
	before, err := os.Stat(overlay)
	require.NoError(t, err)

	p := place{root: root, prepared: done, inspector: image.Inspector{Command: []string{"/none"}}}
	disks, err := makeDisks(t.Context(), instance(), p)
	require.NoError(t, err, "the image is not inspected again")
	after, err := os.Stat(overlay)
	require.NoError(t, err)
	require.Equal(t, before.ModTime(), after.ModTime(), "the overlay is not made again")
	again, err := makeDisks(t.Context(), instance(), place{root: root})
	require.NoError(t, err)
	require.Equal(t, again, disks, "as a start makes them that finds nothing prepared")

	other := instance()
	other.Spec.Volumes[0].ContainerDisk.Path = "/disk/guest.img"
	_, err = makeDisks(t.Context(), other, p)
	require.ErrorContains(t, err, "/none", "the file that the VMI names is inspected")
}

func TestWhatCannotBePreparedIsLeftToTheStart(t *testing.T) {
	for name, files := range map[string]map[string][]byte{"no container disk": nil, "one with two files": {"a": nil, "b": nil}} {
		t.Run(name, func(t *testing.T) {
			root := podRoot(t, files)
			if files == nil {
				require.NoError(t, os.RemoveAll(filepath.Join(root, vmi.ContainerDisksDir)))
			}
			s := &Supervisor{config: Config{Root: root, Logger: slog.New(slog.DiscardHandler)}, session: &session{ready: make(chan struct{})}, prepared: make(chan preparation, 1)}
			ended, cancel := context.WithCancel(t.Context())
			cancel() // there is no daemon
			s.prepare(ended)
			require.Zero(t, s.take(t.Context()))
			require.NoDirExists(t, filepath.Join(root, vmi.EphemeralDisksDir))
		})
	}
}

func TestWhatIsPreparedIsUsedOnce(t *testing.T) {
	s := &Supervisor{prepared: make(chan preparation, 1)}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Zero(t, s.take(ended), "a start that was cancelled waits for nothing")
	s.prepared <- preparation{images: map[string]storage.Image{"root": {}}}
	close(s.prepared)
	require.Len(t, s.take(t.Context()).images, 1)
	require.Zero(t, s.take(t.Context()))
}
