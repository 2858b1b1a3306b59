package plan

// multusSocket is where Multus serves its CNI plugin.
const multusSocket = "/run/multus/multus.sock"

// MultusCertificate is the file with the certificate and the key of a node's Multus,
// below the node's folder. Its name is given by Multus.
const MultusCertificate = "multus/multus-client-current.pem"

// MultusKubeconfig is the file by which a node's Multus finds the API server, below the
// node's folder.
const MultusKubeconfig = "multus.kubeconfig"

// MultusGroup is the group of the Multus of all nodes.
const MultusGroup = "system:multus"

// MultusUser is the user that the Multus of a node is.
func MultusUser(node string) string { return MultusGroup + ":" + node }

// clusterNetworks is the folder with the configuration of the network that every pod has.
// The folder that containerd reads has none before Multus serves, which puts its own
// there, so no node is ready before pods can get all of their networks.
const clusterNetworks = "etc/cni/multus/net.d"

// multusConfig asks for no other certificate: the one that is there is valid for years.
const multusConfig = `{
  "cniVersion": "1.0.0",
  "multusConfigFile": "auto",
  "multusAutoconfigDir": "/` + clusterNetworks + `",
  "cniConfigDir": "/etc/cni/net.d",
  "socketDir": "/run/multus/",
  "logLevel": "error",
  "logToStderr": true,
  "perNodeCertificate": {
    "enabled": true,
    "bootstrapKubeconfig": "$STATE/multus.kubeconfig",
    "certDir": "$STATE/multus",
    "certDuration": "87600h"
  }
}
`

// multusObjects are the definitions of networks as a kind, and what Multus may do: read
// them and the pods, write what it has attached into the status of the pods, and report
// failures as events.
func multusObjects() []object {
	const group = "k8s.cni.cncf.io"
	names := m{
		"plural": "network-attachment-definitions", "singular": "network-attachment-definition",
		"kind": "NetworkAttachmentDefinition", "shortNames": []string{"net-attach-def"},
	}
	schema := m{"type": "object", "properties": m{
		"spec": m{"type": "object", "properties": m{"config": m{"type": "string"}}},
	}}
	return []object{
		{"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", m{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": m{"name": "network-attachment-definitions." + group},
			"spec": m{
				"group": group, "scope": "Namespaced", "names": names,
				"versions": []m{{"name": "v1", "served": true, "storage": true, "schema": m{"openAPIV3Schema": schema}}},
			},
		}},
		{"/apis/rbac.authorization.k8s.io/v1/clusterroles", m{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
			"metadata": m{"name": MultusGroup},
			"rules": []m{
				{"apiGroups": []string{group}, "resources": []string{"network-attachment-definitions"}, "verbs": []string{"get", "list", "watch"}},
				{"apiGroups": []string{""}, "resources": []string{"pods"}, "verbs": []string{"get", "list", "watch"}},
				{"apiGroups": []string{""}, "resources": []string{"pods/status"}, "verbs": []string{"update"}},
				{"apiGroups": []string{""}, "resources": []string{"events"}, "verbs": []string{"create", "patch"}},
			},
		}},
		{"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", m{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
			"metadata": m{"name": MultusGroup},
			"roleRef":  m{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": MultusGroup},
			"subjects": []m{{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": MultusGroup}},
		}},
	}
}
