// Package cluster runs real Kubernetes clusters on this host: etcd,
// kube-apiserver, controller manager, scheduler, CoreDNS and two nodes with
// kubelet, containerd and kube-proxy, from nothing but Go modules and Debian
// packages.
//
// [Up] makes a cluster run and returns when it is well, [Down] removes it with
// everything it has on the host, [Open] finds one that was started before.
// Clusters have names and run side by side. On two idle cores a new cluster is
// well in five seconds, one that runs already is recognised in 30 milliseconds,
// and removing one takes a fifth of a second; the first Up on a host builds
// the programs, which takes about ten minutes and says how far it is (package
// toolchain).
//
// Everything of a cluster runs in namespaces of its own, under one process 1
// (package host) that survives the program that called Up. Nothing is put in
// the root network namespace but one listener on 127.0.0.1, to which the
// kubeconfig points. A program that dies is started again by process 1; if
// process 1 ends, the kernel kills the rest, and the next Up starts anew.
//
// A cluster's folder is podvisor/clusters/NAME in the user's cache folder:
//
//	kubeconfig         for clients; kubectl is beside it
//	plan.json          the hosts and their programs (package plan)
//	init.log           the log of process 1
//	cp/, n1/, n2/      a folder per host: status.json, log/, configuration
//	cp/audit.log       every API request
//	n1/lib/kubelet     /var/lib/kubelet of the node
//
// A claim of the storage class local, which is the default, gets a volume when its first
// pod is scheduled, with a file system or as a block device, which both nodes reach. It
// grows while it is used, and has snapshots and clones (program csi of package toolchain).
//
// Pods get further networks by Multus. The bridge br1 of each node is for those: all nodes
// are on it.
//
// NetworkPolicies hold on every node, for both families (program policy of package
// toolchain).
//
// A node shares the host's files but has its own /etc (changes only), /opt,
// /run, /var/lib and /var/log. Images come by [Cluster.Load]; there is no way to
// a registry, nor to any other place outside, and names that are not the
// cluster's do not exist, at once.
//
// For tests of API clients alone, Config.Extent = plan.APIServer starts etcd and
// kube-apiserver without anything that acts on objects, in about three seconds.
//
// It is a controller over the edges host, toolchain and debian.
//
// Traps: it needs root. Bridged pods need the kernel's bridge netfilter, which
// may be a module (br_netfilter). Control groups of version 2 alone are provided
// for but have not been run; there, the root group must not hold processes, as it
// does in many containers. Resources are not divided: every node reports all of
// the host's.
package cluster
