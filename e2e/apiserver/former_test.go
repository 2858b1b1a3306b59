package apiserver

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// What kubectl shows for manifests of before kubevirt.io/v1: with a webhook all that is to
// be written otherwise, at once, and without one as much as a schema can say.
func TestKubectlShowsWhatToWriteInsteadOfWordsOfBeforeV1(t *testing.T) {
	t.Parallel()
	w := newWebhooks(t, nil)
	const head = "metadata: {name: old}\nspec:\n"
	manifests := map[string]struct {
		text string
		// said is what the webhook says, and schema what is said without one.
		said, schema []string
	}{
		"a VMI in the words of v1alpha2": {"apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstance\n" + head + `
  domain: {memory: {guest: 64Mi}, devices: {disks: [{name: registrydisk, volumeName: registryvolume, disk: {bus: virtio}}]}}
  volumes: [{name: registryvolume, registryDisk: {image: example.com/disk}}]`,
			[]string{"spec.domain.devices.disks[0].volumeName: Forbidden: leave it out, and give the disk the name of its volume", "spec.volumes[0].registryDisk: Forbidden: write containerDisk"},
			[]string{"leave it out, and give the disk the name of its volume: this is a field of before kubevirt.io/v1", "write containerDisk: this is a field of before kubevirt.io/v1"}},
		"a VM without a template": {"apiVersion: kubevirt.io/v1\nkind: VirtualMachine\n" + head + `
  terminationGracePeriodSeconds: 0
  domain: {memory: {guest: 64Mi}}
  volumes: [{name: root, registryDisk: {image: example.com/disk}}]`,
			[]string{"spec.domain: Forbidden: write spec.template.spec.domain, or kind: VirtualMachineInstance for a guest that runs once",
				"spec.terminationGracePeriodSeconds: Forbidden: write spec.template.spec.terminationGracePeriodSeconds",
				"spec.volumes: Forbidden: write spec.template.spec.volumes", "spec.volumes[0].registryDisk: Forbidden: write containerDisk"},
			[]string{"spec.template: Required value"}},
	}
	try := func(name string, want func(string) []string) {
		m := manifests[name].text
		for _, validate := range []string{"strict", "warn", "ignore"} {
			said, err := kubectl(t, m, "-n", w.name, "apply", "--validate="+validate, "-f", "-")
			require.Error(t, err, name)
			require.NotContains(t, said, "unknown field", name)
			for _, text := range want(name) {
				require.Contains(t, strings.Join(strings.Fields(said), " "), text, "%s, --validate=%s", name, validate)
			}
		}
	}
	for name := range manifests {
		try(name, func(n string) []string { return manifests[n].schema })
	}
	w.serve()
	for name := range manifests {
		try(name, func(n string) []string { return manifests[n].said })
	}
	for field, object := range map[string]string{"registryDisk": "vmi.spec.volumes", "volumeName": "vm.spec.template.spec.domain.devices.disks", "domain": "vm.spec"} {
		said, err := kubectl(t, "", "explain", object+"."+field)
		require.NoError(t, err, said)
		require.Regexp(t, `A\s+field\s+of\s+before\s+v1,\s+which\s+no\s+object\s+may\s+have`, said)
	}
}

// An API server keeps all objects and decodes all changes once for each version that it serves.
func TestOneVersionOfEachKindIsServed(t *testing.T) {
	t.Parallel()
	groups, err := world.kube.Discovery().ServerGroups()
	require.NoError(t, err)
	var versions []string
	for _, g := range groups.Groups {
		if g.Name == vmi.GroupName {
			for _, v := range g.Versions {
				versions = append(versions, v.GroupVersion)
			}
		}
	}
	require.Equal(t, []string{vmi.GroupVersion.String()}, versions)
}

// What the label of a node costs one write for: a write of the status leaves it out.
func TestAWriteOfTheStatusWritesNoLabel(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.control()
	v := s.start("vm")
	require.Equal(t, "n1", v.Labels[vmi.NodeNameLabel])
	controller, err := client.New(asController())
	require.NoError(t, err)
	patch := []byte(`{"metadata":{"labels":{"` + vmi.NodeNameLabel + `":"n2"}},"status":{"reason":"x"}}`)
	after, err := controller.VirtualMachineInstances(s.name).Patch(t.Context(), v.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	require.Equal(t, "x", after.Status.Reason)
	require.Equal(t, "n1", after.Labels[vmi.NodeNameLabel])
}
