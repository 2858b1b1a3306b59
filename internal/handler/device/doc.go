// Package device gives the node's devices to launcher pods. It is a device
// plugin of the kubelet for devices.kubevirt.io/kvm, tun, vhost-net and vhost-vsock.
//
// [Find] says which of them the node has, [Plugins.Run] serves them. What a pod
// is given is not the plain device, which belongs to root, but a CDI device with
// the launcher's user as its owner: Run writes the specification that the
// container runtime reads, and writes it again if it is not as it was written. Links
// in the place of its files are replaced and never followed. A [Device] is offered as many times as there may be
// pods, because all of these devices can be shared.
//
// The package does not decide whether a device is of use; see internal/kvm for
// the one where that is a question. It is an edge: it touches the kubelet's and
// the container runtime's folders.
//
// Traps: the kubelet removes all plugins' sockets when it starts, and a pod that
// is bound before the plugin is back fails for good; so Run notices at once when
// the kubelet drops its connection. It does so without inotify, of which a node
// may have none left. In a pod with a user namespace the container runtime binds
// the node's own device and passes over the owner: there the node's device must
// be open to all.
package device
