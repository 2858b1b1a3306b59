package plan

import "path"

// PolicyUser is the name in the certificate of the program that makes the
// NetworkPolicies hold on a node.
const PolicyUser = "podvisor:network-policies"

// nodePolicy makes the NetworkPolicies hold for the pods of a node.
func nodePolicy(name string) Program {
	return Program{
		Name: "policy", After: []string{ready(path.Join(NodeState, "pki/ca.crt"))},
		Args: []string{path.Join(NodePolicy, "policy"), name, path.Join(NodeState, "policy.kubeconfig"), Services.String(), Services6.String()},
	}
}

// policyObjects are what the program on the nodes may read.
func policyObjects() []object {
	return []object{
		{"/apis/rbac.authorization.k8s.io/v1/clusterroles", m{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
			"metadata": m{"name": PolicyUser},
			"rules": []m{
				{"apiGroups": []string{""}, "resources": []string{"nodes"}, "verbs": []string{"get"}},
				{"apiGroups": []string{""}, "resources": []string{"namespaces", "pods"}, "verbs": []string{"list", "watch"}},
				{"apiGroups": []string{"networking.k8s.io"}, "resources": []string{"networkpolicies"}, "verbs": []string{"list", "watch"}},
			},
		}},
		{"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", m{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
			"metadata": m{"name": PolicyUser},
			"roleRef":  m{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": PolicyUser},
			"subjects": []m{{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": PolicyUser}},
		}},
	}
}
