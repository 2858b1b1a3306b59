// Package simulate has the nodes of a cluster without their guests: kubelets, launchers and
// handlers that work against a real API server.
//
// [Kubelets] are the nodes. They register Node objects, bind pods to them, and write the status
// of each pod as a kubelet does. In a launcher pod runs a [Launcher]: the real server of the
// control protocol, at a real socket in the kubelet's folder of pods, with the owner and the
// listener that a real handler requires. It has no libvirt and no QEMU. [Guest] says how long its
// guest takes to start and to power off.
//
// [Handlers] are the controllers of the real virt-handler, one for each node, in this process.
// What binds networks is simulated for them. A virt-handler that is a process of its own works
// with the same launchers: its flag --kubelet-pods is [Kubelets.Pods], and each launcher needs a
// network namespace ([Config.Namespaces]).
//
// All nodes share one watch of pods, so that thousands of pods need two processors. The package
// needs root, because the sockets belong to the user of launchers.
//
// What is not simulated: probes, volumes, init containers, images, leases of nodes. A node
// lifecycle controller would find the nodes dead. Pods whose owner is gone are deleted if
// [Config.Collect] says so, since no garbage collector need run.
package simulate
