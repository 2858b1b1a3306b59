// Package host is the first process of a local cluster and of each of its nodes.
//
// [RunCluster] is process 1 of a cluster. It runs in process, mount, network and
// other namespaces of its own, keeps the programs of the control plane running,
// starts the nodes, connects them by virtual Ethernet, and forwards connections
// from a listener it was given, which belongs to the root network namespace, to
// the API server. [RunNode] is process 1 of a node, in namespaces inside the
// cluster's: it mounts what a node sees, sets up its address and keeps
// containerd, kubelet and kube-proxy running. [Bootstrap] makes the first objects.
//
// Because process namespaces are nested, killing process 1 of a cluster kills
// everything in it at once, and with the last process the kernel takes back the
// mounts and networks. Only control groups remain, see [RemoveCgroups]. A cluster
// lives as long as its lock is held, see [Holder].
//
// A program that ends is started again. What runs is written to status.json in
// the host's folder, see [ReadStatus]; what the programs print to log/.
//
// It is an edge: the kernel's namespaces, mounts and links. It starts no tools.
//
// Traps: process 1 inherits every orphan, so one loop waits for all children and
// os/exec, which waits on its own, is not used. The kubelet sets sysctls of the
// whole host (kernel.panic, vm.overcommit_memory, …); on a node these files
// are covered by copies, so that nothing has to be put back. User namespaces can
// mount a new /proc only if an uncovered one is in sight, so there is a second.
package host
