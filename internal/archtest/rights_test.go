package archtest

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// rightsOfTheController are the rights of virt-controller, as "resource: verbs", with the
// names that they are for, and the words of docs/security.md that say what a thief does
// with them.
var rightsOfTheController = map[string]string{
	"virtualmachineinstances: get list watch create patch delete":          "deletes VMIs",
	"virtualmachines: get list watch create patch delete":                  "deletes the VMs of pools",
	"virtualmachinepools: get list watch":                                  "reads all pools, VMs, replica sets and VMIs",
	"virtualmachinepools/status: patch":                                    "writes any status",
	"virtualmachinepools/finalizers: update":                               "removes finalizers",
	"virtualmachineinstancereplicasets: get list watch":                    "reads all pools, VMs, replica sets and VMIs",
	"virtualmachines/status: patch update":                                 "writes any status",
	"virtualmachineinstances/status: patch update":                         "writes any status",
	"virtualmachineinstancereplicasets/status: patch":                      "writes any status",
	"virtualmachineinstancemigrations: get list watch create patch delete": "creates and deletes migrations",
	"virtualmachineinstancemigrations/status: patch":                       "writes any status",
	"migrationpolicies: list watch":                                        "MigrationPolicies",
	"virtualmachineinstancetypes: get list watch":                          "all instance types and preferences",
	"virtualmachineclusterinstancetypes: get list watch":                   "all instance types and preferences",
	"virtualmachinepreferences: get list watch":                            "all instance types and preferences",
	"virtualmachineclusterpreferences: get list watch":                     "all instance types and preferences",
	"namespaces: get": "the labels of namespaces",
	"controllerrevisions: list watch create delete": "the ControllerRevisions of everyone",
	"kubevirts: list watch":                         "KubeVirts",
	"kubevirts/status: patch":                       "writes any status",
	"customresourcedefinitions virtualmachineinstances.kubevirt.io kubevirts.kubevirt.io: list watch": "",
	"virtualmachines/finalizers: update":                                                "removes finalizers",
	"virtualmachineinstances/finalizers: update":                                        "removes finalizers",
	"virtualmachineinstancereplicasets/finalizers: update":                              "removes finalizers",
	"pods: get list watch create delete":                                                "makes the launcher of a VMI again",
	"pods/eviction: create":                                                             "evicts pods with the name of a launcher",
	"pods/status: patch":                                                                "the gate by which a paused guest leaves its Services",
	"nodes: get list watch":                                                             "nodes",
	"persistentvolumeclaims: get list watch":                                            "claims",
	"persistentvolumeclaims: create patch delete":                                       "makes claims of 10Mi",
	"datavolumes: get list watch create":                                                "DataVolumes",
	"network-attachment-definitions: get":                                               "NetworkAttachmentDefinitions",
	"priorityclasses: get":                                                              "PriorityClasses",
	"events: create list":                                                               "writes events",
	"validatingwebhookconfigurations virt-controller.kubevirt.io: list watch":           "the secret paths of the webhooks",
	"configmaps extension-apiserver-authentication: list watch":                         "whom the API server trusts as its proxy",
	"subjectaccessreviews: create":                                                      "finds out by SubjectAccessReviews what any user is allowed to do",
	"tokenreviews: create":                                                              "finds out whose a token is that it holds",
	"apiservices v1.subresources.kubevirt.io v1alpha3.subresources.kubevirt.io: delete": "the APIServices of the verbs",
	"components virt-controller: act":                                                   "",
	"leases: create":                                                                    "takes the lease of the leader",
	"leases virt-controller: get update":                                                "takes the lease of the leader",
	"secrets virt-controller-certificates: list watch update":                           "reads the key of its own certificate",
	"daemonsets: list watch":                                                            "the DaemonSets of its namespace",
	"serviceaccounts/token virt-controller: create":                                     "opens the console and the screen of every guest",
	"daemonsets virt-handler: delete":                                                   "the DaemonSet of virt-handler",
}

func TestTheRightsOfTheControllerAreNamed(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "manifests/rbac/virt-controller.yaml"))
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs/security.md"))
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(page), "\n### The token of virt-controller\n")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n### ")
	section = strings.Join(strings.Fields(section), " ")
	var has []string
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		var role rbacv1.ClusterRole
		require.NoError(t, yaml.Unmarshal([]byte(doc), &role))
		for _, r := range role.Rules {
			for _, resource := range r.Resources {
				has = append(has, strings.Join(append([]string{resource}, r.ResourceNames...), " ")+": "+strings.Join(r.Verbs, " "))
			}
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(rightsOfTheController)), has, "say in docs/security.md what a thief of the token does with it")
	for right, words := range rightsOfTheController {
		require.Contains(t, section, words, right)
	}
}
