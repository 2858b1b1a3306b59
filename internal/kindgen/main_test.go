package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/kinds"
)

func TestTheManifestsAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	n := 0
	require.NoError(t, filepath.WalkDir("../../manifests", func(file string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".yaml" || filepath.Base(filepath.Dir(file)) == "crds" {
			return err
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		name, err := filepath.Rel("../../manifests", file)
		require.NoError(t, err)
		got, err := render(name, string(text), kinds.All())
		require.NoError(t, err, file)
		require.Equal(t, string(text), got, "%s: run make generate", file)
		n += strings.Count(got, "# kinds: ")
		return nil
	}))
	require.Positive(t, n)
}

// labs are a kind that a table may have: of another group, and with all that a kind can
// have in the manifests.
func labs() kinds.Kind {
	return kinds.Kind{
		Definition: vmi.Definition{GroupVersionKind: schema.GroupVersionKind{Group: "lab.kubevirt.io", Version: "v1beta1", Kind: "Lab"}, Plural: "labs"},
		Open:       true,
		Template:   func(vmi.Object) *vmi.VirtualMachineInstanceTemplateSpec { return nil },
		Grants: []kinds.Grant{
			{Role: "kubevirt.io:view", Verbs: []string{"get", "list", "watch"}},
			{Role: "virt-controller", Verbs: []string{"get", "update"}},
			{Role: "virt-controller", Subresource: "status", Verbs: []string{"patch"}},
		},
		StatusBy: []kinds.Component{kinds.Controller}, EventsBy: []kinds.Component{kinds.Controller},
	}
}

// policies are a kind of the cluster with no more than validation.
func policies() kinds.Kind {
	return kinds.Kind{Definition: vmi.Definition{
		GroupVersionKind: schema.GroupVersionKind{Group: "network.kubevirt.io", Version: "v1alpha1", Kind: "Policy"}, Plural: "policies", ClusterScoped: true,
	}}
}

func rendered(t *testing.T, name, text string, all ...kinds.Kind) string {
	t.Helper()
	out, err := render(name, text, append(kinds.All(), all...))
	require.NoError(t, err)
	again, err := render(name, out, append(kinds.All(), all...))
	require.NoError(t, err)
	require.Equal(t, out, again, "what was generated is not changed again")
	back, err := render(name, out, kinds.All())
	require.NoError(t, err)
	require.Equal(t, text, back, "kinds that go leave nothing")
	return out
}

func TestAKindOfAnotherGroupGetsARuleOfItsOwn(t *testing.T) {
	t.Parallel()
	text := `webhooks:
- name: validation
  rules:
  # A comment.
  # kinds: served
  - apiGroups: [kubevirt.io]
    apiVersions: [v1]
    operations: [CREATE, UPDATE]
    resources: [virtualmachines, virtualmachineinstances, virtualmachineinstancereplicasets, kubevirts, virtualmachineinstancemigrations]
    scope: Namespaced
  # kinds: served
  - apiGroups: [migrations.kubevirt.io]
    apiVersions: [v1alpha1]
    operations: [CREATE, UPDATE]
    resources: [migrationpolicies]
    scope: Cluster
  # kinds: served
  - apiGroups: [instancetype.kubevirt.io]
    apiVersions: [v1beta1]
    operations: [CREATE, UPDATE]
    resources: [virtualmachineinstancetypes, virtualmachinepreferences]
    scope: Namespaced
  # kinds: served
  - apiGroups: [instancetype.kubevirt.io]
    apiVersions: [v1beta1]
    operations: [CREATE, UPDATE]
    resources: [virtualmachineclusterinstancetypes, virtualmachineclusterpreferences]
    scope: Cluster
  # kinds: served
  - apiGroups: [pool.kubevirt.io]
    apiVersions: [v1beta1]
    operations: [CREATE, UPDATE]
    resources: [virtualmachinepools]
    scope: Namespaced
  matchPolicy: Equivalent
`
	require.Equal(t, strings.Replace(text, "  matchPolicy", `  # kinds: served
  - apiGroups: [lab.kubevirt.io]
    apiVersions: [v1beta1]
    operations: [CREATE, UPDATE]
    resources: [labs]
    scope: Namespaced
  # kinds: served
  - apiGroups: [network.kubevirt.io]
    apiVersions: [v1alpha1]
    operations: [CREATE, UPDATE]
    resources: [policies]
    scope: Cluster
  matchPolicy`, 1), rendered(t, "webhooks.yaml", text, labs(), policies()))

	text = `
    resourceRules:
    # kinds: status
    - apiGroups: [kubevirt.io]
      apiVersions: ["*"]
      resources: [virtualmachines/status, virtualmachineinstances/status, virtualmachineinstancereplicasets/status, virtualmachineinstancemigrations/status]
    # kinds: status
    - apiGroups: [pool.kubevirt.io]
      apiVersions: ["*"]
      resources: [virtualmachinepools/status]
  validations: []
`
	require.Equal(t, strings.Replace(text, "  validations", `    # kinds: status
    - apiGroups: [lab.kubevirt.io]
      apiVersions: ["*"]
      resources: [labs/status]
  validations`, 1), rendered(t, "status.yaml", text, labs(), policies()))
}

func TestARoleGetsItsGrants(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../manifests/rbac/virt-controller.yaml")
	require.NoError(t, err)
	out := rendered(t, "virt-controller.yaml", string(b), labs(), policies())
	require.Contains(t, out, "  resources: [virtualmachines/finalizers, virtualmachineinstances/finalizers, virtualmachineinstancereplicasets/finalizers]\n  verbs: [update]\n")
	require.Contains(t, out, "  resources: [virtualmachinepools/finalizers]\n  verbs: [update]\n"+
		"# kinds: granted\n- apiGroups: [lab.kubevirt.io]\n  resources: [labs]\n  verbs: [get, update]\n"+
		"# kinds: granted\n- apiGroups: [lab.kubevirt.io]\n  resources: [labs/status]\n  verbs: [patch]\n")
	require.NotContains(t, out, "[policies]")

	k := labs()
	k.Group = "kubevirt.io"
	b, err = os.ReadFile("../../manifests/rbac/users.yaml")
	require.NoError(t, err)
	require.Equal(t, strings.Replace(string(b), "virtualmachineinstancemigrations]\n  verbs: [get, list, watch]\n", "virtualmachineinstancemigrations, labs]\n  verbs: [get, list, watch]\n", 1),
		rendered(t, "users.yaml", string(b), k))
}

func TestTheListsOfAnExpressionAreThoseOfTheSets(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"policies/events.yaml", "policies/metadata.yaml", "webhooks.yaml"} {
		b, err := os.ReadFile("../../manifests/" + file)
		require.NoError(t, err)
		out := rendered(t, file, string(b), labs())
		require.Contains(t, out, map[string]string{
			"policies/events.yaml": `["VirtualMachineInstance"]
      : ["VirtualMachine", "VirtualMachineInstance", "VirtualMachineInstanceReplicaSet", "KubeVirt", "VirtualMachineInstanceMigration", "VirtualMachinePool", "Lab"]`,
			"policies/metadata.yaml": `["kubevirt.io/", "lab.kubevirt.io/"].exists(g, o.apiVersion.startsWith(g)) &&
      o.kind in ["VirtualMachine", "VirtualMachineInstanceReplicaSet", "Lab"]`,
			"webhooks.yaml": `["virtualmachines.kubevirt.io", "virtualmachineinstances.kubevirt.io",
      "virtualmachineinstancereplicasets.kubevirt.io", "kubevirts.kubevirt.io", "virtualmachineinstancemigrations.kubevirt.io", "migrationpolicies.migrations.kubevirt.io", "virtualmachineinstancetypes.instancetype.kubevirt.io", "virtualmachineclusterinstancetypes.instancetype.kubevirt.io", "virtualmachinepreferences.instancetype.kubevirt.io", "virtualmachineclusterpreferences.instancetype.kubevirt.io", "virtualmachinepools.pool.kubevirt.io", "labs.lab.kubevirt.io"]`,
		}[file], file)
	}
}

func TestTheDefinitionsOfServedKindsAreInstalled(t *testing.T) {
	t.Parallel()
	text := "# - crds/none.yaml\nresources:\n- crds/kubevirt.io_kubevirts.yaml\n- crds/kubevirt.io_virtualmachines.yaml\n" +
		"- crds/kubevirt.io_virtualmachineinstancereplicasets.yaml\n- crds/kubevirt.io_virtualmachineinstances.yaml\n" +
		"- crds/kubevirt.io_virtualmachineinstancemigrations.yaml\n- crds/migrations.kubevirt.io_migrationpolicies.yaml\n- crds/instancetype.kubevirt.io_virtualmachineinstancetypes.yaml\n- crds/instancetype.kubevirt.io_virtualmachineclusterinstancetypes.yaml\n- crds/instancetype.kubevirt.io_virtualmachinepreferences.yaml\n- crds/instancetype.kubevirt.io_virtualmachineclusterpreferences.yaml\n- crds/pool.kubevirt.io_virtualmachinepools.yaml\n- webhooks.yaml\n"
	require.Equal(t, strings.Replace(text, "- webhooks", "- crds/lab.kubevirt.io_labs.yaml\n- webhooks", 1), rendered(t, kustomization, text, labs()))
	require.Equal(t, text, installed(strings.Replace(text, "- webhooks", "- crds/kubevirt.io_gone.yaml\n- webhooks", 1), kinds.All()))
}

func TestWhatIsNoSetIsAnError(t *testing.T) {
	t.Parallel()
	rule := "name: x\n# kinds: %\n- apiGroups: [kubevirt.io]\n  resources: [a]\n"
	for text, want := range map[string]string{
		strings.Replace(rule, "%", "all", 1):                      `there is no set of kinds "all"`,
		strings.Replace(rule, "%", "served, guests", 1):           "a rule has the resources of one set",
		strings.Replace(rule, "%", "events of virt-launcher", 1):  "is empty",
		strings.Replace(rule, "%", "granted", 1):                  `no kind has a grant for the role ""`,
		"# kinds: served\n- expression: x in y\n":                 "the item has 0 lists",
		"# kinds: served\n- expression: x in [\"A\"] + [\"B\"]\n": "the item has 2 lists",
	} {
		_, err := render("x.yaml", text, kinds.All())
		require.ErrorContains(t, err, want, text)
	}
}
