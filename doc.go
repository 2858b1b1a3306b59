// Package podvisor runs virtual machines as a native Kubernetes workload. This page is the
// overview; the packages are the library.
//
// A user posts a VirtualMachineInstance. virt-controller makes a pod for it. In the pod,
// virt-launcher runs a private libvirt daemon and QEMU. virt-handler, one per node, binds
// the VMI to the pod's network and reports its status. When the object is deleted, the
// guest is asked to power off, and nothing is left. A VirtualMachine starts and stops a
// VirtualMachineInstance of its name, and a VirtualMachineInstanceReplicaSet keeps a
// number of equal ones running.
//
// # The three kinds of package
//
// Every package is one of three kinds, and its place says which:
//
//   - Core computes. It takes values and returns values. It reads no clock and no random
//     source, and imports nothing that could touch the node or the cluster. Core packages
//     are [github.com/podvisor/podvisor/vmi], [github.com/podvisor/podvisor/scheduler/pod],
//     [github.com/podvisor/podvisor/launcher/domain],
//     [github.com/podvisor/podvisor/network] and [github.com/podvisor/podvisor/storage].
//     scheduler/instance, scheduler/vm, scheduler/replicaset, handler and launcher decide.
//   - An edge touches one outside thing and is named after it: vmi/client (the
//     API server), internal/network/link (netlink), internal/launcher/libvirt, internal/storage/image.
//   - A controller joins them to a loop: observe, decide, act. There is one per
//     process: scheduler/controller, handler/controller, launcher/supervisor.
//
// The binaries in cmd/ are flags, a Config and a call of Run.
//
// # Embedding
//
// A VMI becomes a pod without a cluster, and libvirt XML without libvirt:
//
//	p, err := pod.Render(instance, pod.Config{Launcher: pod.Launcher{Image: "…"}})
//	d, err := domain.Build(instance, domain.Host{KVM: true})
//
// An operator that reads and writes VMIs imports vmi and vmi/client and gets client-go,
// but nothing of libvirt, netlink or the controllers.
//
// # Traps
//
// Specs are stored as the user wrote them: apply
// [github.com/podvisor/podvisor/vmi/defaults] before reading one. Objects in a cache are
// shared: copy before changing. An object that a cache does not hold may exist.
package podvisor
