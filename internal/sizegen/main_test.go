package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/kinds"
	"github.com/podvisor/podvisor/vmi/manifest"
)

func TestTheListsAreUpToDate(t *testing.T) {
	t.Parallel()
	for name, objects := range lists() {
		want, err := render(objects)
		require.NoError(t, err)
		is, err := os.ReadFile(filepath.Join("../..", dir, name))
		require.NoError(t, err)
		require.Equal(t, string(want), string(is), "run make generate")
	}
}

// vmOf is a VM that names what the spec says.
func vmOf(spec string) string {
	return `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: web}
spec:
  runStrategy: Halted
  ` + spec + `
  template:
    spec:
      domain: {devices: {}}
      volumes: [{name: root, containerDisk: {image: "example/disk:1"}}]
`
}

func TestAVMOfEachInstanceTypeAndPreferenceHasNoFaults(t *testing.T) {
	t.Parallel()
	var data []byte
	for _, objects := range lists() {
		text, err := render(objects)
		require.NoError(t, err)
		checked, err := manifest.Check(text, kinds.Cluster{})
		require.NoError(t, err)
		require.Len(t, checked, len(objects))
		for _, o := range checked {
			require.Empty(t, o.Faults, "%s", o)
			require.Empty(t, o.Unserved, "%s", o)
		}
		data = append(data, text...)
	}
	known, err := manifest.Sizes(data)
	require.NoError(t, err)
	check := func(name, spec string) {
		t.Helper()
		all, err := manifest.Check([]byte(vmOf(spec)), kinds.Cluster{}, known...)
		require.NoError(t, err)
		require.Empty(t, all[0].Faults, name)
		require.Empty(t, all[0].Notes, name)
		v := all[0].Complete.(*vmi.VirtualMachine)
		require.Nil(t, v.Spec.Instancetype, name)
		require.Nil(t, v.Spec.Preference, name)
	}
	for _, s := range instancetypes() {
		check(s.Name, `instancetype: {name: `+s.Name+`}`)
	}
	for _, p := range preferences() {
		check(p.Name, "instancetype: {name: u1.2xlarge}\n  preference: {name: "+p.Name+"}")
	}
}

func TestTheSeriesHaveTheSizesThatTheirUsersKnow(t *testing.T) {
	t.Parallel()
	all := map[string]*size{}
	for _, s := range instancetypes() {
		require.NotContains(t, all, s.Name)
		all[s.Name] = s
	}
	require.Len(t, all, 57)
	require.Len(t, preferences(), 44)
	for name, want := range map[string]struct {
		cpus   uint32
		memory string
	}{
		"u1.nano": {1, "512Mi"}, "u1.2xmedium": {2, "4Gi"}, "u1.8xlarge": {32, "128Gi"}, "o1.micro": {1, "1Gi"}, "d1.large": {2, "8Gi"},
		"cx1.medium1gi": {1, "2Gi"}, "cx1.8xlarge": {32, "64Gi"}, "m1.large": {2, "16Gi"}, "m1.8xlarge1gi": {32, "256Gi"}, "n1.medium": {4, "4Gi"}, "n1.8xlarge": {64, "128Gi"},
	} {
		require.Contains(t, all, name)
		require.Equal(t, want.cpus, all[name].Spec.CPU.Guest, name)
		require.Equal(t, want.memory, all[name].Spec.Memory.Guest.String(), name)
	}
	require.NotContains(t, all, "o1.2xmedium")
	require.Equal(t, uint32(8), *all["cx1.2xlarge1gi"].Spec.CPU.MaxSockets)
}

func TestAnExpandedVMHasWhatItsUsersKnow(t *testing.T) {
	t.Parallel()
	var data []byte
	for _, objects := range lists() {
		text, err := render(objects)
		require.NoError(t, err)
		data = append(data, text...)
	}
	known, err := manifest.Sizes(data)
	require.NoError(t, err)
	for name, tt := range map[string]struct{ of, preference, want string }{
		"u1.medium and fedora": {"u1.medium", "fedora", `
metadata: {annotations: {vm.kubevirt.io/os: linux}}
spec:
  domain:
    cpu: {sockets: 1, cores: 1, threads: 1}
    memory: {guest: 4Gi}
    firmware: {bootloader: {efi: {secureBoot: true}}}
    features: {smm: {}}
    devices: {rng: {}, disks: [{name: root, disk: {bus: virtio}}], interfaces: [{name: default, model: virtio, bridge: {}}]}
  networks: [{name: default, pod: {}}]
`},
		"u1.large and windows.11.virtio": {"u1.large", "windows.11.virtio", `
spec:
  terminationGracePeriodSeconds: 3600
  domain:
    cpu: {sockets: 2, cores: 1, threads: 1}
    memory: {guest: 8Gi}
    firmware: {bootloader: {efi: {secureBoot: true, persistent: true}}}
    devices: {tpm: {persistent: true}, video: {type: virtio}, autoattachInputDevice: true, inputs: [{name: default-0, type: tablet, bus: usb}]}
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, err := manifest.Check([]byte(vmOf("instancetype: {name: "+tt.of+"}\n  preference: {name: "+tt.preference+"}")), kinds.Cluster{}, known...)
			require.NoError(t, err)
			got, want := map[string]any{}, map[string]any{}
			text, err := yaml.Marshal(all[0].Complete.(*vmi.VirtualMachine).Spec.Template)
			require.NoError(t, err)
			require.NoError(t, yaml.Unmarshal(text, &got))
			require.NoError(t, yaml.Unmarshal([]byte(tt.want), &want))
			require.Equal(t, want, part(got, want), "of\n%s", text)
		})
	}
}

// part is what of is there of what wanted names.
func part(is, wanted any) any {
	w, ok := wanted.(map[string]any)
	if !ok || len(w) == 0 {
		return is
	}
	i, _ := is.(map[string]any)
	out := map[string]any{}
	for k := range w {
		out[k] = part(i[k], w[k])
	}
	return out
}
