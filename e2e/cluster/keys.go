package cluster

import (
	"encoding/base64"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"

	"github.com/podvisor/podvisor/e2e/cluster/pki"
	"github.com/podvisor/podvisor/e2e/cluster/plan"
)

// keys makes all certificates and keys, and the administrator's kubeconfig:
// content by path below the cluster's folder.
func keys(p plan.Plan, port int) (map[string][]byte, error) {
	files := map[string][]byte{}
	put := func(name string, pair pki.Pair) {
		files[name+".crt"], files[name+".key"] = pair.Cert, pair.Key
	}
	ca, err := pki.New("podvisor-" + p.Name)
	if err != nil {
		return nil, err
	}
	put("pki/ca", ca.Pair)
	frontProxy, err := pki.New("podvisor-front-proxy-" + p.Name)
	if err != nil {
		return nil, err
	}
	put("pki/front-proxy-ca", frontProxy.Pair)
	pair, err := frontProxy.Issue(pki.Subject{Name: "front-proxy-client"})
	if err != nil {
		return nil, err
	}
	put("pki/front-proxy-client", pair)
	for name, subject := range subjects(p) {
		pair, err := ca.Issue(subject)
		if err != nil {
			return nil, err
		}
		put(name, pair)
	}
	if files["pki/sa.key"], files["pki/sa.pub"], err = pki.SigningKey(); err != nil {
		return nil, err
	}
	for _, n := range p.Nodes {
		files[filepath.Join(n.Name, "pki/ca.crt")] = ca.Cert
		multus, err := ca.Issue(pki.Subject{Name: plan.MultusUser(n.Name), Groups: []string{plan.MultusGroup}})
		if err != nil {
			return nil, err
		}
		files[filepath.Join(n.Name, plan.MultusCertificate)] = slices.Concat(multus.Cert, multus.Key)
		// Of this one Multus takes the server and the authority, which must be in it.
		files[filepath.Join(n.Name, plan.MultusKubeconfig)] = kubeconfig(p.Name, plan.Server, ca.Cert, multus)
	}
	admin := pki.Pair{Cert: files["pki/admin.crt"], Key: files["pki/admin.key"]}
	files["kubeconfig"] = kubeconfig(p.Name, fmt.Sprintf("https://127.0.0.1:%d", port), ca.Cert, admin)
	return files, nil
}

// subjects are those that get a certificate of the cluster's authority, by the path of
// the certificate.
func subjects(p plan.Plan) map[string]pki.Subject {
	loopback := netip.MustParseAddr("127.0.0.1")
	all := map[string]pki.Subject{
		"pki/apiserver": {
			Name: "kube-apiserver",
			DNS: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
				"kubernetes.default.svc." + plan.Domain},
			IPs: []netip.Addr{loopback, p.ControlPlane.Address.Addr(), p.ControlPlane.Address6.Addr(), plan.APIService},
		},
		"pki/apiserver-kubelet-client": {Name: "kube-apiserver-kubelet-client", Groups: []string{"system:masters"}},
		"pki/admin":                    {Name: "admin", Groups: []string{"system:masters"}},
		"pki/controller-manager":       {Name: "system:kube-controller-manager"},
		"pki/scheduler":                {Name: "system:kube-scheduler"},
		"pki/coredns":                  {Name: "system:coredns"},
	}
	for _, n := range p.Nodes {
		all[filepath.Join(n.Name, "pki/kubelet")] = pki.Subject{
			Name: "system:node:" + n.Name, Groups: []string{"system:nodes"},
			DNS: []string{n.Name}, IPs: []netip.Addr{n.Address.Addr(), n.Address6.Addr(), loopback},
		}
		all[filepath.Join(n.Name, "pki/kube-proxy")] = pki.Subject{Name: "system:kube-proxy"}
		all[filepath.Join(n.Name, "pki/policy")] = pki.Subject{Name: plan.PolicyUser}
	}
	return all
}

// kubeconfig is a client configuration that holds everything itself.
func kubeconfig(name, server string, ca []byte, user pki.Pair) []byte {
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: podvisor-%[1]s
  cluster:
    server: %[2]s
    certificate-authority-data: %[3]s
users:
- name: podvisor-%[1]s
  user:
    client-certificate-data: %[4]s
    client-key-data: %[5]s
contexts:
- name: podvisor-%[1]s
  context: {cluster: podvisor-%[1]s, user: podvisor-%[1]s}
current-context: podvisor-%[1]s
`, name, server, b64(ca), b64(user.Cert), b64(user.Key))
}
