package plan

import (
	"encoding/json"
	"fmt"
)

// dnsReady is where CoreDNS says, inside the control plane, that it serves.
const dnsReady = "http://127.0.0.1:8181/ready"

// corefile configures CoreDNS. A cluster without a way out has no other names
// than its own, so everything else does not exist: an answer at once, where
// asking a server that cannot be reached would hang.
func corefile(c Config) string {
	return fmt.Sprintf(`.:53 {
    bind %s %s
    errors
    ready 127.0.0.1:8181
    kubernetes %s in-addr.arpa ip6.arpa {
        kubeconfig %s
        ttl 5
    }
    template ANY ANY . {
        rcode NXDOMAIN
    }
}
`, ControlPlane.Addr(), ControlPlane6.Addr(), Domain, c.cp("coredns.kubeconfig"))
}

// object is one API object and the path it is created at.
type object struct {
	Path   string `json:"path"`
	Object any    `json:"object"`
}

type m = map[string]any

// listOf is the file with the objects.
func listOf(objects []object) string {
	data, err := json.MarshalIndent(objects, "", "  ")
	if err != nil {
		panic(err) // nothing in it can fail to marshal
	}
	return string(data) + "\n"
}

// dnsObjects is what makes CoreDNS, which runs outside of the pods, the
// cluster's DNS server: what it may read, and the Service with its address.
func dnsObjects() []object {
	ports := []m{{"name": "dns", "protocol": "UDP", "port": 53}, {"name": "dns-tcp", "protocol": "TCP", "port": 53}}
	return []object{
		{"/apis/rbac.authorization.k8s.io/v1/clusterroles", m{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
			"metadata": m{"name": "system:coredns"},
			"rules": []m{
				{"apiGroups": []string{""}, "resources": []string{"services", "namespaces"}, "verbs": []string{"list", "watch"}},
				{"apiGroups": []string{"discovery.k8s.io"}, "resources": []string{"endpointslices"}, "verbs": []string{"list", "watch"}},
			},
		}},
		{"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", m{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
			"metadata": m{"name": "system:coredns"},
			"roleRef":  m{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:coredns"},
			"subjects": []m{{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:coredns"}},
		}},
		{"/api/v1/namespaces/kube-system/services", m{
			"apiVersion": "v1", "kind": "Service",
			"metadata": m{"name": "kube-dns", "labels": m{"k8s-app": "kube-dns"}},
			"spec":     m{"clusterIP": DNSService.String(), "ports": ports},
		}},
		{"/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices", m{
			"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
			"metadata":    m{"name": "kube-dns", "labels": m{"kubernetes.io/service-name": "kube-dns"}},
			"addressType": "IPv4",
			"ports":       ports,
			"endpoints":   []m{{"addresses": []string{ControlPlane.Addr().String()}, "conditions": m{"ready": true}}},
		}},
	}
}
