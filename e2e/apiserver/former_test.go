package apiserver

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
		"its version": {"apiVersion: kubevirt.io/v1alpha3\nkind: VirtualMachineInstance\n" + head + `
  domain: {memory: {guest: 64Mi}}
  volumes: [{name: root, registryDisk: {image: example.com/disk}}]`,
			[]string{"apiVersion: Forbidden: kubevirt.io/v1alpha3 cannot be written any more: write apiVersion: kubevirt.io/v1", "spec.volumes[0].registryDisk: Forbidden: write containerDisk"},
			[]string{"kubevirt.io/v1alpha3 cannot be written any more: write apiVersion: kubevirt.io/v1"}},
		"the version of a manifest of today": {"apiVersion: kubevirt.io/v1alpha1\nkind: VirtualMachineInstance\n" + head + "  domain: {memory: {guest: 64Mi}}",
			[]string{"apiVersion: Forbidden: kubevirt.io/v1alpha1 cannot be written any more: write apiVersion: kubevirt.io/v1"},
			[]string{"kubevirt.io/v1alpha1 cannot be written any more: write apiVersion: kubevirt.io/v1"}},
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

// An object is written in no way by a version of before v1, whose schema allows anything
// else: not by its status, its finalizers or its scale either.
func TestAttackNothingIsWrittenByAVersionOfBeforeV1(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	v := s.create(guest("vm"))
	set := s.createSet(setOf(0))
	controller, err := client.New(asController())
	require.NoError(t, err)
	_, err = controller.VirtualMachineInstances(s.name).Patch(t.Context(), v.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":["`+vmi.Finalizer+`"]}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	before, err := s.vmis.Get(t.Context(), v.Name, metav1.GetOptions{})
	require.NoError(t, err)
	const merge = string(types.MergePatchType)
	for _, version := range []string{"v1alpha3", "v1alpha2", "v1alpha1"} {
		at := "kubevirt.io/" + version + "/namespaces/" + s.name + "/"
		for _, write := range []struct{ verb, path, kind, body string }{
			{http.MethodPatch, "virtualmachineinstances/vm", merge, `{"spec":{"hostname":"x"}}`},
			{http.MethodPatch, "virtualmachineinstances/vm", merge, `{"spec":{"domain":null}}`},
			{http.MethodPatch, "virtualmachineinstances/vm", merge, `{"metadata":{"labels":{"a":"b"}}}`},
			{http.MethodPatch, "virtualmachineinstances/vm", merge, `{"metadata":{"finalizers":null}}`},
			{http.MethodPatch, "virtualmachineinstances/vm", merge, `{"metadata":{"annotations":{"kubevirt.io/vm-generation":"7"}}}`},
			{http.MethodPatch, "virtualmachineinstances/vm", merge, `{"status":{"phase":"Running"}}`},
			{http.MethodPatch, "virtualmachineinstances/vm/status", merge, `{"status":{"phase":"Running"}}`},
			{http.MethodPatch, "virtualmachineinstances/vm/status", merge, `{"status":{"anything":{"at":"all"}}}`},
			{http.MethodPatch, "virtualmachineinstances/vm", string(types.JSONPatchType), `[{"op":"add","path":"/anything","value":1}]`},
			{http.MethodPatch, "virtualmachineinstancereplicasets/" + set.Name, merge, `{"spec":{"replicas":1}}`},
			{http.MethodPatch, "virtualmachineinstancereplicasets/" + set.Name + "/scale", merge, `{"spec":{"replicas":1}}`},
			{http.MethodPost, "virtualmachineinstances", "application/json", `{"apiVersion":"kubevirt.io/` + version + `","kind":"VirtualMachineInstance","metadata":{"name":"other"},"spec":{"domain":{"memory":{"guest":"64Mi"}}}}`},
			{http.MethodPost, "virtualmachineinstances", "application/json", `{"apiVersion":"kubevirt.io/` + version + `","kind":"VirtualMachineInstance","metadata":{"name":"other"},"anything":1}`},
		} {
			err := raw(t.Context(), write.verb, at+write.path, write.kind, write.body)
			require.Error(t, err, "%s %v", version, write)
			require.True(t, apierrors.IsInvalid(err) || apierrors.IsForbidden(err), "%s %v: %v", version, write, err)
		}
	}
	after, err := s.vmis.Get(t.Context(), v.Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, before, after)
	l, err := s.vmis.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, l.Items, 1)
	// It is read, with a warning, and is what clients choose only if they ask for it.
	said, err := kubectl(t, "", "-n", s.name, "get", "virtualmachineinstances.v1alpha3.kubevirt.io", "vm", "-o", "name")
	require.NoError(t, err, said)
	require.Contains(t, said, "Warning: kubevirt.io/v1alpha3 is read and not written: write apiVersion: kubevirt.io/v1")
	said, err = kubectl(t, "", "-n", s.name, "get", "vmi", "vm", "-o", "jsonpath={.apiVersion}")
	require.NoError(t, err, said)
	require.Equal(t, vmi.GroupVersion.String(), said)
	groups, err := world.kube.Discovery().ServerGroups()
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool {
		return g.Name == vmi.GroupName && g.PreferredVersion.GroupVersion == vmi.GroupVersion.String() && len(g.Versions) == 4
	}))
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
