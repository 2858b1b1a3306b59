package plan

import (
	"fmt"
	"net/netip"
	"path"
)

// Extent says how much of a cluster is wanted.
type Extent string

const (
	// Full is a cluster with nodes that run pods; the zero value.
	Full Extent = ""
	// APIServer is etcd and kube-apiserver alone: objects can be stored, watched
	// and validated, and nothing acts on them.
	APIServer Extent = "apiserver"
)

// Config says which cluster is wanted.
type Config struct {
	// Name of the cluster.
	Name string
	// Extent of the cluster.
	Extent Extent
	// Nodes is how many nodes a full cluster has.
	Nodes int
	// ID differs for each start of the cluster.
	ID string
	// State is the cluster's folder.
	State string
	// Kubernetes and Runtime are the folders with the programs, as package
	// toolchain makes them.
	Kubernetes, Runtime string
	// APIServer is another program kube-apiserver than that in the folder Kubernetes; empty
	// means that one.
	APIServer string
	// CSI is the folder with the program that gives claims their volumes.
	CSI string
	// Policy is the folder with the program that makes NetworkPolicies hold.
	Policy string
	// PauseImage is the image that holds a pod's namespaces; the node finds it in
	// the file pause.tar of its folder.
	PauseImage string
}

// Plan is a whole cluster as data.
type Plan struct {
	Name       string `json:"name"`
	ID         string `json:"id"`
	Extent     Extent `json:"extent,omitempty"`
	State      string `json:"state"`
	Kubernetes string `json:"kubernetes"`
	Runtime    string `json:"runtime"`
	CSI        string `json:"csi"`
	Policy     string `json:"policy"`

	ControlPlane Host   `json:"controlPlane"`
	Nodes        []Host `json:"nodes,omitempty"`
	// Files are the configuration files: content by path below the cluster's folder.
	Files map[string]string `json:"-"`
}

// Host is a set of programs that share namespaces.
type Host struct {
	Name string `json:"name"`
	// Address is the host's own address and the network that all hosts are in.
	Address netip.Prefix `json:"address"`
	// Address6 is the same for IPv6.
	Address6 netip.Prefix `json:"address6"`
	// Pods is the network of the pods on this host; not valid means none.
	Pods netip.Prefix `json:"pods,omitzero"`
	// Pods6 is the same for IPv6.
	Pods6 netip.Prefix `json:"pods6,omitzero"`
	// Cgroup is the parent of all containers, relative to the root of every
	// hierarchy; empty means that the host runs none.
	Cgroup   string    `json:"cgroup,omitempty"`
	Programs []Program `json:"programs"`
}

// Program returns the program with the given name, or one without a name.
func (m Host) Program(name string) Program {
	for _, p := range m.Programs {
		if p.Name == name {
			return p
		}
	}
	return Program{}
}

// Program is one process that is kept running.
type Program struct {
	// Name is also the name of the log.
	Name string `json:"name"`
	// Args begin with the path of the executable.
	Args []string `json:"args"`
	// Env is added to the environment.
	Env []string `json:"env,omitempty"`
	// After are the conditions that hold before it starts, see package host.
	After []string `json:"after,omitempty"`
	// Ready are the conditions that hold once it does its work.
	Ready []string `json:"ready,omitempty"`
	// Prompt says that others wait for its answers: on a busy host it gets the processors before
	// pods and tests do.
	Prompt bool `json:"prompt,omitempty"`
	// Once says that the program ends by itself, and well with status 0.
	Once bool `json:"once,omitempty"`
}

// The addresses of every cluster, which has IPv4 and IPv6. IPv4 is the first family
// of its pods and the only one of a Service that does not ask for both.
var (
	// ControlPlane is where etcd, kube-apiserver and CoreDNS listen.
	ControlPlane = netip.MustParsePrefix("10.200.0.1/24")
	// ControlPlane6 is the same for IPv6.
	ControlPlane6 = netip.MustParsePrefix("fd00:200::1/64")
	// Services is the network of the Services' addresses.
	Services = netip.MustParsePrefix("10.96.0.0/16")
	// Services6 is the same for IPv6.
	Services6 = netip.MustParsePrefix("fd00:96::/112")
	// APIService is the address of the Service default/kubernetes.
	APIService = netip.MustParseAddr("10.96.0.1")
	// DNSService is the address of the Service kube-system/kube-dns.
	DNSService = netip.MustParseAddr("10.96.0.10")
	// Pods is the network of all pods.
	Pods = netip.MustParsePrefix("10.244.0.0/16")
	// Pods6 is the same for IPv6.
	Pods6 = netip.MustParsePrefix("fd00:244::/48")
)

// Domain is the domain of the names of Services and pods.
const Domain = "cluster.local"

// MaxNodes is how many nodes a cluster can have.
const MaxNodes = 9

// Where a node's programs see their things. A node has its own /run.
const (
	NodeState      = "/run/podvisor/node"
	NodeKubernetes = "/run/podvisor/kubernetes"
	NodeRuntime    = "/run/podvisor/runtime"
	NodeCSI        = "/run/podvisor/csi"
	NodePolicy     = "/run/podvisor/policy"
	NodeVolumes    = "/run/podvisor/volumes"
)

// VolumesDir is the folder of the volumes of claims, below the cluster's.
const VolumesDir = "cp/csi"

// NodeName is the name of the node with the given number, counted from 1.
func NodeName(n int) string { return fmt.Sprintf("n%d", n) }

// NodeAddress is the address of the node with the given number, counted from 1.
func NodeAddress(n int) netip.Prefix {
	return netip.MustParsePrefix(fmt.Sprintf("10.200.0.%d/24", 10+n))
}

// NodeAddress6 is the IPv6 address of the node with the given number, counted from 1.
func NodeAddress6(n int) netip.Prefix {
	return netip.MustParsePrefix(fmt.Sprintf("fd00:200::%d/64", 10+n))
}

// NodePods is the network of the pods of the node with the given number.
func NodePods(n int) netip.Prefix {
	return netip.MustParsePrefix(fmt.Sprintf("10.244.%d.0/24", n))
}

// NodePods6 is the IPv6 network of the pods of the node with the given number.
func NodePods6(n int) netip.Prefix {
	return netip.MustParsePrefix(fmt.Sprintf("fd00:244:0:%d::/64", n))
}

// Cgroup is the parent of all of a cluster's cgroups.
func Cgroup(cluster string) string { return "podvisor-" + cluster }

// New computes the plan of a cluster.
func New(c Config) Plan {
	p := Plan{
		Name: c.Name, ID: c.ID, Extent: c.Extent,
		State: c.State, Kubernetes: c.Kubernetes, Runtime: c.Runtime, CSI: c.CSI, Policy: c.Policy,
		ControlPlane: controlPlane(c), Files: controlPlaneFiles(c),
	}
	if c.Extent == APIServer {
		return p
	}
	for n := 1; n <= c.Nodes; n++ {
		m := node(c, n)
		p.Nodes = append(p.Nodes, m)
		for name, content := range nodeFiles(c, n) {
			p.Files[path.Join(m.Name, name)] = content
		}
	}
	return p
}

// kubeconfig is a client configuration that names files.
func kubeconfig(server, ca, cert, key string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: podvisor
  cluster: {server: %q, certificate-authority: %q}
users:
- name: podvisor
  user: {client-certificate: %q, client-key: %q}
contexts:
- name: podvisor
  context: {cluster: podvisor, user: podvisor}
current-context: podvisor
`, server, ca, cert, key)
}
