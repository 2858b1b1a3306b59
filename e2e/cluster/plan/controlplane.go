package plan

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
)

// Server is the URL of kube-apiserver inside the cluster.
var Server = fmt.Sprintf("https://%s:6443", ControlPlane.Addr())

// serviceRanges are the networks of the Services' addresses, the first family first.
var serviceRanges = Services.String() + "," + Services6.String()

const etcdURL = "http://127.0.0.1:2379"

// bootstrapped is the condition that the first objects exist.
const bootstrapped = "done:bootstrap"

func controlPlane(c Config) Host {
	m := Host{
		Name: "cp", Address: ControlPlane, Address6: ControlPlane6,
		Programs: []Program{etcd(c), apiServer(c), bootstrap(c)},
	}
	if c.Extent == APIServer {
		return m
	}
	m.Programs = append(m.Programs, controllerManager(c), kubeScheduler(c), coreDNS(c), csiController(c), snapshotKinds(c))
	return m
}

func (c Config) program(name string, args ...string) Program {
	return Program{Name: name, Args: append([]string{path.Join(c.Kubernetes, name)}, args...)}
}

func (c Config) cp(name string) string  { return path.Join(c.State, "cp", name) }
func (c Config) pki(name string) string { return path.Join(c.State, "pki", name) }

func etcd(c Config) Program {
	// One member needs neither fsync, since the cluster does not outlive the
	// host's memory, nor the usual second of waiting for other candidates.
	p := c.program("etcd",
		"--name=cp", "--data-dir="+c.cp("etcd"), "--unsafe-no-fsync=true",
		"--heartbeat-interval=50", "--election-timeout=500",
		"--listen-client-urls="+etcdURL, "--advertise-client-urls="+etcdURL,
		"--listen-peer-urls=http://127.0.0.1:2380", "--initial-advertise-peer-urls=http://127.0.0.1:2380",
		"--initial-cluster=cp=http://127.0.0.1:2380", "--log-level=warn")
	p.Prompt = true
	return p
}

func apiServer(c Config) Program {
	p := c.program("kube-apiserver",
		"--etcd-servers="+etcdURL,
		"--bind-address=0.0.0.0", "--secure-port=6443", "--advertise-address="+ControlPlane.Addr().String(),
		"--service-cluster-ip-range="+serviceRanges,
		"--tls-cert-file="+c.pki("apiserver.crt"), "--tls-private-key-file="+c.pki("apiserver.key"),
		"--client-ca-file="+c.pki("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc."+Domain,
		"--service-account-key-file="+c.pki("sa.pub"), "--service-account-signing-key-file="+c.pki("sa.key"),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
		"--kubelet-client-certificate="+c.pki("apiserver-kubelet-client.crt"),
		"--kubelet-client-key="+c.pki("apiserver-kubelet-client.key"),
		"--kubelet-certificate-authority="+c.pki("ca.crt"), "--kubelet-preferred-address-types=InternalIP",
		// The aggregation layer. No kube-proxy runs here, so Services are
		// reached through their endpoints.
		"--requestheader-client-ca-file="+c.pki("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group", "--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file="+c.pki("front-proxy-client.crt"),
		"--proxy-client-key-file="+c.pki("front-proxy-client.key"), "--enable-aggregator-routing=true",
		"--audit-policy-file="+c.cp("audit-policy.yaml"), "--audit-log-path="+c.cp("audit.log"),
		"--audit-log-maxsize=1000", "--audit-log-maxbackup=1",
		// Where nothing else runs, the API server itself may be what is measured.
		"--profiling="+strconv.FormatBool(c.Extent == APIServer), "--v=1")
	p.Args[0] = cmp.Or(c.APIServer, p.Args[0])
	p.Ready, p.Prompt = []string{ready(c.pki("ca.crt"))}, true
	return p
}

// ready is the condition that the API server serves.
func ready(ca string) string { return "https:" + ca + ":" + Server + "/readyz" }

// bootstrap makes the first objects. The executable is the one that runs it.
func bootstrap(c Config) Program {
	return c.create("bootstrap", []string{ready(c.pki("ca.crt"))}, c.cp("bootstrap.json"))
}

// create makes the objects in the files.
func (c Config) create(name string, after []string, files ...string) Program {
	return Program{
		Name: name, Once: true, After: after,
		Args: append([]string{"/proc/self/exe", "bootstrap", Server, c.pki("ca.crt"), c.pki("admin.crt"), c.pki("admin.key")}, files...),
	}
}

func controllerManager(c Config) Program {
	p := c.program("kube-controller-manager",
		"--kubeconfig="+c.cp("controller-manager.kubeconfig"),
		"--authentication-kubeconfig="+c.cp("controller-manager.kubeconfig"),
		"--authorization-kubeconfig="+c.cp("controller-manager.kubeconfig"),
		"--bind-address=127.0.0.1", "--leader-elect=false",
		"--use-service-account-credentials=true", "--service-account-private-key-file="+c.pki("sa.key"),
		"--root-ca-file="+c.pki("ca.crt"),
		"--cluster-signing-cert-file="+c.pki("ca.crt"), "--cluster-signing-key-file="+c.pki("ca.key"),
		"--allocate-node-cidrs=false", "--service-cluster-ip-range="+serviceRanges,
		// With the usual 20 requests per second the start alone takes seconds.
		"--kube-api-qps=1000", "--kube-api-burst=2000", "--profiling=false")
	p.After = []string{bootstrapped}
	return p
}

func kubeScheduler(c Config) Program {
	p := c.program("kube-scheduler",
		"--kubeconfig="+c.cp("scheduler.kubeconfig"),
		"--authentication-kubeconfig="+c.cp("scheduler.kubeconfig"),
		"--authorization-kubeconfig="+c.cp("scheduler.kubeconfig"),
		"--bind-address=127.0.0.1", "--leader-elect=false",
		"--kube-api-qps=1000", "--kube-api-burst=2000", "--profiling=false")
	p.After = []string{bootstrapped}
	return p
}

func coreDNS(c Config) Program {
	p := c.program("coredns", "-conf", c.cp("Corefile"))
	p.After = []string{bootstrapped}
	p.Ready = []string{"http:" + dnsReady}
	return p
}

func controlPlaneFiles(c Config) map[string]string {
	files := map[string]string{
		"cp/audit-policy.yaml": auditPolicy,
		"cp/bootstrap.json":    "[]\n",
	}
	if c.Extent == APIServer {
		return files
	}
	for _, user := range []string{"controller-manager", "scheduler", "coredns"} {
		files["cp/"+user+".kubeconfig"] = kubeconfig(Server, c.pki("ca.crt"), c.pki(user+".crt"), c.pki(user+".key"))
	}
	files["cp/Corefile"] = corefile(c)
	files["cp/bootstrap.json"] = listOf(slices.Concat(dnsObjects(), multusObjects(), storageObjects(), policyObjects()))
	files["cp/snapshot-class.json"] = listOf(snapshotClass())
	return files
}

// auditPolicy writes one line per request, when it is done, and one for the beginning
// of a watch.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [watch]
- level: Metadata
  omitStages: [ResponseStarted]
`
