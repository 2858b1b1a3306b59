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
	"virtualmachineinstances: get list watch create patch delete": "deletes VMIs",
	"virtualmachines: get list watch patch":                       "Starts VMs that are off",
	"virtualmachineinstancereplicasets: get list watch":           "Reads all VMs, replica sets and VMIs",
	"virtualmachines/status: patch":                               "Writes any status",
	"virtualmachineinstances/status: patch":                       "Writes any status",
	"virtualmachineinstancereplicasets/status: patch":             "Writes any status",
	"controllerrevisions: list watch create delete":               "the ControllerRevisions of everyone",
	"kubevirts: list watch":                                       "KubeVirts",
	"kubevirts/status: patch":                                     "Writes any status",
	"customresourcedefinitions virtualmachineinstances.kubevirt.io kubevirts.kubevirt.io: list watch": "",
	"virtualmachines/finalizers: update":                                                "removes finalizers",
	"virtualmachineinstances/finalizers: update":                                        "removes finalizers",
	"virtualmachineinstancereplicasets/finalizers: update":                              "removes finalizers",
	"pods: get list watch create delete":                                                "Makes the launcher of a VMI again",
	"pods/status: patch":                                                                "the gate by which a paused guest leaves its Services",
	"nodes: get list watch":                                                             "nodes",
	"persistentvolumeclaims: get list watch":                                            "claims",
	"persistentvolumeclaims: create":                                                    "Makes claims of 10Mi",
	"datavolumes: get list watch create":                                                "DataVolumes",
	"network-attachment-definitions: get":                                               "NetworkAttachmentDefinitions",
	"priorityclasses: get":                                                              "PriorityClasses",
	"events: create list":                                                               "Writes events",
	"validatingwebhookconfigurations virt-controller.kubevirt.io: list watch":           "the secret paths of the webhooks",
	"configmaps extension-apiserver-authentication: list watch":                         "whom the API server trusts as its proxy",
	"subjectaccessreviews: create":                                                      "Finds out by SubjectAccessReviews what anyone may do",
	"apiservices v1.subresources.kubevirt.io v1alpha3.subresources.kubevirt.io: delete": "the APIServices of the verbs",
	"components virt-controller: act":                                                   "",
	"leases: create":                                                                    "takes the lease of the leader",
	"leases virt-controller: get update":                                                "takes the lease of the leader",
	"secrets virt-controller-certificates: list watch update":                           "Reads the key of its own certificate",
	"daemonsets: list watch":                                                            "the DaemonSets of its namespace",
	"serviceaccounts/token virt-controller: create":                                     "Opens the console and the screen of every guest",
	"daemonsets virt-handler: delete":                                                   "the DaemonSet of virt-handler",
}

func TestTheRightsOfTheControllerAreNamed(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "manifests/rbac/virt-controller.yaml"))
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs/security.md"))
	require.NoError(t, err)
	_, row, ok := strings.Cut(string(page), "\n| virt-controller | ends every VMI")
	require.True(t, ok)
	row, _, _ = strings.Cut(row, "\n")
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
		require.Contains(t, row, words, right)
	}
}
