package policy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/internal/effect"
	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
)

const (
	manifest = "manifests/policies/virt-controller.yaml"
	root     = "../../"
	account  = "system:serviceaccount:kubevirt:virt-controller"
)

// pods is the policy for the pods that virt-controller makes, with these values of variables.
func pods(t *testing.T, variables map[string]string) *Policy {
	t.Helper()
	p, err := Read(root+manifest, "virt-controller.kubevirt.io")
	require.NoError(t, err)
	for i, v := range p.Spec.Variables {
		if value, ok := variables[v.Name]; ok {
			p.Spec.Variables[i].Expression = value
		}
	}
	return p
}

// rendered is the pod that is made of the VMI.
func rendered(t *testing.T, v *vmi.VirtualMachineInstance) *corev1.Pod {
	t.Helper()
	made, err := effect.Make(v)
	require.NoError(t, err)
	text, err := yaml.Marshal(made.Pod)
	require.NoError(t, err)
	var p corev1.Pod
	require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(string(text), "example/virt-launcher", "podvisor/virt-launcher")), &p))
	return &p
}

// hostDisks are the folders that the disks of the VMI are in.
func hostDisks(v *vmi.VirtualMachineInstance) string {
	var all []string
	for _, k := range v.Spec.Volumes {
		if k.HostDisk != nil {
			all = append(all, "'"+filepath.Dir(k.HostDisk.Path)+"'")
		}
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// bases are the VMIs that have every served field between them.
func bases(t *testing.T) map[string]*vmi.VirtualMachineInstance {
	t.Helper()
	files, err := filepath.Glob(root + "internal/effect/testdata/*.yaml")
	require.NoError(t, err)
	out := map[string]*vmi.VirtualMachineInstance{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		v := &vmi.VirtualMachineInstance{}
		require.NoError(t, yaml.Unmarshal(text, v))
		v.UID = "11111111-1111-4111-8111-111111111111"
		if v.Namespace == "" {
			v.Namespace = "default"
		}
		out[filepath.Base(f)] = v
	}
	require.NotEmpty(t, out)
	return out
}

// A kind of volume is permitted by lists that are written by hand: a pod must not get more of
// a node because a program of the project asks for it.
func TestThePolicyPermitsThePodOfEachKindOfVolume(t *testing.T) {
	tried := map[string]bool{}
	for name, v := range bases(t) {
		for _, k := range v.Spec.Volumes {
			kind, err := volume.Of(k, nil)
			require.NoError(t, err)
			tried[kind.Name] = true
		}
		refusals := refused(t, v)
		if len(refusals) == 0 {
			continue
		}
		for _, k := range v.Spec.Volumes {
			if says := refused(t, withOnly(v, k)); len(says) > 0 {
				t.Errorf("%s: volume %s: permit in %s what pods have for a volume of the kind %v: %q", name, k.Name, manifest, k.Kinds(), says)
			}
		}
		require.Empty(t, refusals, "%s: permit in %s what the pod of this VMI has", name, manifest)
	}
	for _, k := range volume.Kinds() {
		require.True(t, tried[k.Name], "%s: no VMI of internal/effect/testdata has a volume of this kind", k.Name)
	}
}

// refused are what the policy says against the pod of the VMI.
func refused(t *testing.T, v *vmi.VirtualMachineInstance) []string {
	t.Helper()
	refusals, err := pods(t, map[string]string{"hostDisks": hostDisks(v)}).Refusals(Request{User: account, Namespace: v.Namespace, Object: rendered(t, v)})
	require.NoError(t, err)
	return refusals
}

// withOnly is the VMI with one of its volumes, and without the others.
func withOnly(v *vmi.VirtualMachineInstance, k vmi.Volume) *vmi.VirtualMachineInstance {
	out := v.DeepCopy()
	d := &out.Spec.Domain.Devices
	out.Spec.Volumes = []vmi.Volume{k}
	out.Spec.AccessCredentials = nil
	d.Disks = slices.DeleteFunc(d.Disks, func(d vmi.Disk) bool { return d.Name != k.Name })
	d.Filesystems = slices.DeleteFunc(d.Filesystems, func(f vmi.Filesystem) bool { return f.Name != k.Name })
	return out
}

func TestThePolicyPermitsThePodsOfTheGoldenFiles(t *testing.T) {
	files, err := filepath.Glob(root + "scheduler/pod/testdata/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		var p corev1.Pod
		require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(string(text), "example/virt-launcher", "podvisor/virt-launcher")), &p))
		refusals, err := pods(t, nil).Refusals(Request{User: account, Namespace: p.Namespace, Object: &p})
		require.NoError(t, err, f)
		require.Empty(t, refusals, f)
	}
}

func TestThePolicyRefusesAVolumeOfAnotherKind(t *testing.T) {
	p := rendered(t, bases(t)["masquerade.yaml"])
	for name, tt := range map[string]struct {
		change func(*corev1.Pod)
		says   string
	}{
		"another source": {func(p *corev1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "other", VolumeSource: corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/"}}})
		}, "virt-controller may make no pod with other volumes"},
		"another folder": {func(p *corev1.Pod) {
			p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: p.Spec.Volumes[0].Name, MountPath: "/usr/bin"})
		}, "virt-controller may mount volumes only where the launcher reads them"},
		"the network of the node": {func(p *corev1.Pod) { p.Spec.HostNetwork = true }, "virt-controller may make no pod with spec.hostNetwork"},
	} {
		t.Run(name, func(t *testing.T) {
			other := p.DeepCopy()
			tt.change(other)
			refusals, err := pods(t, nil).Refusals(Request{User: account, Namespace: "default", Object: other})
			require.NoError(t, err)
			require.Len(t, refusals, 1)
			require.Contains(t, refusals[0], tt.says)
		})
	}
	_, err := pods(t, nil).Refusals(Request{User: "kubernetes-admin", Object: p})
	require.ErrorContains(t, err, "does not match the policy")
	_, err = Read(root+manifest, "nothing")
	require.ErrorContains(t, err, "has no policy nothing")
}
