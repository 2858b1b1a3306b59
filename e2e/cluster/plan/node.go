package plan

import (
	"path"
	"strings"
)

// containerdSocket is where containerd listens on a node.
const containerdSocket = "/run/containerd/containerd.sock"

func node(c Config, n int) Host {
	state := func(name string) string { return path.Join(NodeState, name) }
	kubernetes := func(name string) string { return path.Join(NodeKubernetes, name) }
	serves := ready(state("pki/ca.crt"))
	name := NodeName(n)
	return Host{
		Name: name, Address: NodeAddress(n), Address6: NodeAddress6(n), Pods: NodePods(n), Pods6: NodePods6(n),
		Cgroup: path.Join(Cgroup(c.Name), name),
		Programs: []Program{
			{
				Name:  "containerd",
				Args:  []string{path.Join(NodeRuntime, "containerd"), "--config", state("containerd.toml")},
				Ready: []string{"unix:" + containerdSocket},
			}, {
				Name: "pause-image", Once: true, After: []string{"unix:" + containerdSocket},
				Args: []string{path.Join(NodeRuntime, "ctr"), "-n", "k8s.io", "images", "import", state("pause.tar")},
			}, {
				// Pods that start after it was killed wait until it serves again.
				Name: "multus", After: []string{serves},
				Args:  []string{path.Join(NodeRuntime, "multus-daemon"), "-config", state("multus.json")},
				Env:   []string{"MULTUS_NODE_NAME=" + name},
				Ready: []string{"unix:" + multusSocket},
			}, {
				Name: "kubelet", After: []string{serves, "done:pause-image"},
				Args: []string{kubernetes("kubelet"), "--config=" + state("kubelet.yaml"),
					"--kubeconfig=" + state("kubelet.kubeconfig"), "--hostname-override=" + name,
					"--node-ip=" + NodeAddress(n).Addr().String() + "," + NodeAddress6(n).Addr().String(), "--v=2"},
				Ready: []string{"http:http://127.0.0.1:10248/healthz"},
			}, {
				Name: "kube-proxy", After: []string{serves},
				Args:  []string{kubernetes("kube-proxy"), "--config=" + state("kube-proxy.yaml"), "--v=1"},
				Ready: []string{"http:http://127.0.0.1:10256/healthz"},
			},
			csiNode(name),
			nodePolicy(name),
		},
	}
}

func nodeFiles(c Config, n int) map[string]string {
	pki := func(name string) string { return path.Join(NodeState, "pki", name) }
	replace := strings.NewReplacer(
		"$NAME", NodeName(n),
		"$ADDRESS", NodeAddress(n).Addr().String(),
		"$PODS4", NodePods(n).String(),
		"$PODS6", NodePods6(n).String(),
		"$ALLPODS", Pods.String()+","+Pods6.String(),
		"$CGROUP", "/"+path.Join(Cgroup(c.Name), NodeName(n)),
		"$DNS", DNSService.String(),
		"$DOMAIN", Domain,
		"$STATE", NodeState,
		"$RUNTIME", NodeRuntime,
		"$SOCKET", containerdSocket,
		"$PAUSE", c.PauseImage,
	)
	return map[string]string{
		"containerd.toml":                     replace.Replace(containerdConfig),
		clusterNetworks + "/10-podvisor.conf": replace.Replace(cniConfig),
		"multus.json":                         replace.Replace(multusConfig),
		"kubelet.yaml":                        replace.Replace(kubeletConfig),
		"kube-proxy.yaml":                     replace.Replace(proxyConfig),
		"kubelet.kubeconfig":                  kubeconfig(Server, pki("ca.crt"), pki("kubelet.crt"), pki("kubelet.key")),
		"kube-proxy.kubeconfig":               kubeconfig(Server, pki("ca.crt"), pki("kube-proxy.crt"), pki("kube-proxy.key")),
		"policy.kubeconfig":                   kubeconfig(Server, pki("ca.crt"), pki("policy.crt"), pki("policy.key")),
	}
}

// containerdConfig: CDI's default folders are read without configuration. Devices of
// claims belong to the user of their container, who could not open them otherwise. The plugin "opt" would make a folder in
// the host's /opt. Without the capability SYS_RESOURCE, containerd must not
// ask for a lower OOM score than its own.
const containerdConfig = `version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt"]

[grpc]
  address = "$SOCKET"

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "$PAUSE"

# Each container's shim would be asked once a second how much processor time it has used. kubelet
# reads that itself.
[plugins."io.containerd.cri.v1.runtime"]
  stats_collect_period = "1m"
  stats_retention_period = "3m"
  restrict_oom_score_adj = true
  device_ownership_from_security_context = true
  disable_hugetlb_controller = true
  tolerate_missing_hugetlb_controller = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/opt/cni/bin"]
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        BinaryName = "$RUNTIME/runc"
        SystemdCgroup = false
`

// cniConfig is one plugin and no list of plugins: of a list Multus 4.2 keeps only a part,
// with which it cannot detach pods again, and their addresses are never free.
const cniConfig = `{
  "cniVersion": "1.0.0",
  "name": "podvisor",
  "type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
  "ipam": {
    "type": "host-local",
    "ranges": [[{"subnet": "$PODS4"}], [{"subnet": "$PODS6"}]],
    "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]
  }
}
`

const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 0.0.0.0
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: $STATE/pki/ca.crt}
authorization: {mode: Webhook}
tlsCertFile: $STATE/pki/kubelet.crt
tlsPrivateKeyFile: $STATE/pki/kubelet.key
cgroupDriver: cgroupfs
cgroupRoot: $CGROUP
failCgroupV1: false
failSwapOn: false
clusterDomain: $DOMAIN
clusterDNS: [$DNS]
containerRuntimeEndpoint: unix://$SOCKET
# Pods without the cluster's DNS have none: the host's servers are out of reach.
resolvConf: /dev/null
makeIPTablesUtilChains: false
serializeImagePulls: false
# Pods are looked at more often than each minute: what changes in Secrets and in the sizes
# of claims is seen then.
syncFrequency: 10s
# A Guaranteed container with whole CPUs has them for itself. What is kept for the
# system is rounded up to whole CPUs there, so that pods can have all but one.
cpuManagerPolicy: static
systemReserved: {cpu: 100m}
# Images are loaded by hand and cannot be pulled again, so they are never
# collected, and pods are evicted only when the disk is all but full.
imageGCHighThresholdPercent: 100
evictionHard:
  memory.available: 100Mi
  nodefs.available: 1%
  imagefs.available: 1%
  nodefs.inodesFree: 1%
  imagefs.inodesFree: 1%
`

const proxyConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
bindAddress: $ADDRESS
hostnameOverride: $NAME
clusterCIDR: $ALLPODS
clientConnection: {kubeconfig: $STATE/kube-proxy.kubeconfig}
# The usual second between two updates spares hosts with thousands of Services.
nftables: {minSyncPeriod: 50ms}
# The limits of connection tracking belong to the whole host, not to a namespace.
conntrack: {maxPerCore: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`
