package device

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/golden"
	"github.com/podvisor/podvisor/vmi"
)

func sysfs(t *testing.T, devices map[string]string) string {
	dir := t.TempDir()
	for name, number := range devices {
		d := filepath.Join(dir, "class/misc", name)
		require.NoError(t, os.MkdirAll(d, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(d, "dev"), []byte(number), 0o644))
	}
	return dir
}

func TestFind(t *testing.T) {
	t.Parallel()
	kvm := Device{Name: KVM, Resource: vmi.KVMResource, Path: "/dev/kvm", Major: 10, Minor: 232}
	vhost := Device{Name: VhostNet, Resource: vmi.VhostNetResource, Path: "/dev/vhost-net", Major: 10, Minor: 238}
	vsock := Device{Name: VhostVSOCK, Resource: "devices.kubevirt.io/vhost-vsock", Path: "/dev/vhost-vsock", Major: 10, Minor: 241}
	tests := []struct {
		name  string
		sysfs map[string]string
		want  []Device
	}{
		{"a node with everything", map[string]string{"kvm": "10:232\n", "tun": "10:200\n", "vhost-net": "10:238\n", "vhost-vsock": "10:241\n", "fuse": "10:229\n"}, []Device{kvm, tun, vhost, vsock}},
		{"a node without virtualization", map[string]string{"tun": "10:200\n"}, []Device{tun}},
		{"a node with nothing", nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Find(sysfs(t, tt.sysfs))
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
	_, err := Find(sysfs(t, map[string]string{"tun": "nonsense"}))
	require.ErrorContains(t, err, "read the number of device tun")
}

func TestKVMIsOfferedWhereItIsOfUse(t *testing.T) {
	t.Parallel()
	with, without := []string{KVM, Tun}, []string{Tun}
	tests := []struct {
		name   string
		sysfs  map[string]string
		choice Choice
		usable bool
		want   []string
	}{
		{"where guests run on it", map[string]string{"kvm": "10:232", "tun": "10:200"}, Auto, true, with},
		{"not where none does", map[string]string{"kvm": "10:232", "tun": "10:200"}, Auto, false, without},
		{"untried, if that is wanted", map[string]string{"kvm": "10:232", "tun": "10:200"}, Yes, false, with},
		{"not if that is wanted", map[string]string{"kvm": "10:232", "tun": "10:200"}, No, true, without},
		{"not where there is none", map[string]string{"tun": "10:200"}, Yes, true, without},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			found, err := Find(sysfs(t, tt.sysfs))
			require.NoError(t, err)
			got, err := choose(found, tt.choice, func(string) (bool, string) { return tt.usable, "" }, slog.New(slog.DiscardHandler))
			require.NoError(t, err)
			var names []string
			for _, d := range got {
				names = append(names, d.Name)
			}
			require.Equal(t, tt.want, names)
		})
	}
	_, err := Offer("/sys", "perhaps", slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, `not "perhaps"`)
}

func TestTheCDISpecificationGivesTheDevicesToTheLauncher(t *testing.T) {
	t.Parallel()
	devices, err := Find(sysfs(t, map[string]string{"kvm": "10:232", "tun": "10:200", "vhost-net": "10:238", "vhost-vsock": "10:241"}))
	require.NoError(t, err)
	dir := t.TempDir()
	for _, offered := range [][]Device{devices[:1], devices} {
		spec, err := CDI(offered)
		require.NoError(t, err)
		require.NoError(t, writeCDI(dir, spec), "a second handler replaces the file")
		require.True(t, cdiIsWritten(dir, spec))
	}
	b, err := os.ReadFile(filepath.Join(dir, cdiFile))
	require.NoError(t, err)
	golden.Equal(t, "testdata/cdi.json", b)
	all, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, all, 1, "nothing half written is left")
}
