package pod_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/served"
	"github.com/podvisor/podvisor/vmi/validate"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestWhatIsNotServedHasNoPod(t *testing.T) {
	t.Parallel()
	_, err := pod.Render(vmitest.New(vmitest.WithContainerDisk("a", "b"), with(func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Memory = nil
		v.Spec.Volumes[0].VolumeSource = vmi.VolumeSource{PersistentVolumeClaim: &vmi.PersistentVolumeClaimVolume{Hotpluggable: true}}
		v.Spec.Domain.Devices.Interfaces = []vmi.Interface{{Name: "old", InterfaceBinding: vmi.InterfaceBinding{DeprecatedSlirp: &vmi.DeprecatedBinding{}}}}
		v.Spec.Networks = []vmi.Network{{Name: "old", NetworkSource: vmi.NetworkSource{Pod: &vmi.PodNetwork{}}}}
	})), config)
	require.ErrorIs(t, err, vmi.ErrInvalid)
	require.EqualError(t, err, `invalid: spec.domain.devices.interfaces[0].slirp: Invalid value: "old": this binding has been discontinued: use masquerade; `+
		`spec.domain.memory.guest: Required value: say how much memory the guest sees: here, or in spec.domain.resources.requests.memory, or have one huge page by spec.domain.memory.hugepages.pageSize; `+
		`spec.volumes[0].persistentVolumeClaim.hotpluggable: Forbidden: not served yet: nothing can be added to a running VMI yet`)
}

// document is a file with an object, or with a record of one.
type document struct {
	FeatureGates []string       `json:"featureGates"`
	Object       map[string]any `json:"object"`
}

// instanceOf is the VMI of a file and what of it is not served. It is nil if there
// is none of which all fields have a type.
func instanceOf(t *testing.T, file string) (*vmi.VirtualMachineInstance, served.Fields, validate.Features) {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var d document
	if yaml.Unmarshal(data, &d) == nil && d.Object == nil {
		require.NoError(t, yaml.Unmarshal(data, &d.Object))
	}
	delete(d.Object, "status")
	object, err := yaml.Marshal(d.Object)
	require.NoError(t, err)
	var v vmi.VirtualMachineInstance
	if d.Object["kind"] != vmi.VirtualMachineInstances.Kind || yaml.UnmarshalStrict(object, &v) != nil {
		return nil, nil, validate.Features{}
	}
	// Some of the records are about specs that leave the memory to others.
	if m := v.Spec.Domain.GuestMemory(); m.IsZero() {
		vmitest.WithMemory("128Mi")(&v)
	}
	f, _ := validate.FeatureGates(append(d.FeatureGates, "Sidecar", "HostDisk")...)
	return &v, served.Unserved(vmi.VirtualMachineInstances.Kind).In(d.Object), f
}

// devicesOf are the devices of nodes that the VMI asks for.
func devicesOf(v *vmi.VirtualMachineInstance) map[string]bool {
	all := map[string]bool{}
	for _, g := range v.Spec.Domain.Devices.GPUs {
		all[g.DeviceName] = true
	}
	for _, h := range v.Spec.Domain.Devices.HostDevices {
		all[h.DeviceName] = true
	}
	return all
}

// What asks only for what is served has a pod, as it is written and with
// KubeVirt's defaults.
func TestWhatIsServedHasAPod(t *testing.T) {
	t.Parallel()
	const conformance = "../../../shared/conformance/"
	files, err := filepath.Glob("../../examples/*.yaml")
	require.NoError(t, err)
	for _, folder := range []string{"vmi", "accepted"} {
		more, err := filepath.Glob(conformance + folder + "/*.yaml")
		require.NoError(t, err)
		files = append(files, more...)
	}
	rendered, completed := 0, 0
	for _, file := range files {
		v, unserved, features := instanceOf(t, file)
		if v == nil || len(unserved) > 0 || slices.ContainsFunc(served.Marks(), func(a served.Mark) bool { return a.State == served.MarkRefused && v.Annotations[a.Key] != "" }) {
			continue
		}
		if d := v.Spec.Domain.Memory; d != nil && d.MaxGuest != nil && d.Guest != nil && d.Guest.Cmp(*d.MaxGuest) > 0 {
			continue // KubeVirt takes it for a VMI, and not for a VM
		}
		c := config
		c.Cluster.Limits.Features = features
		c.Cluster.Pods.HostDevices = devicesOf(v)
		_, err := pod.Render(v, c)
		require.NoError(t, err, file)
		rendered++
		defaulted := conformance + "defaulted/" + filepath.Base(file)
		if _, err := os.Stat(defaulted); err != nil {
			continue
		}
		v, _, _ = instanceOf(t, defaulted)
		_, err = pod.Render(v, c)
		require.NoError(t, err, defaulted)
		completed++
	}
	t.Logf("rendered: %d as they are written, %d of them with KubeVirt's defaults too", rendered, completed)
	require.NotZero(t, rendered)
}
