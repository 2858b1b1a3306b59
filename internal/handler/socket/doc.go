// Package socket connects to the control socket of a launcher's pod.
//
// [Pods.Dial] is the whole of it. The folder that the socket is in belongs to a
// tenant, which can put anything there, so no path is followed that could lead
// elsewhere. The socket is resolved below the
// kubelet's folder of pods without any symbolic link, held by a descriptor, and
// connected to through that descriptor; what is there must be a socket, with one
// name, and the process that listens must run as its owner and not as root.
//
// It is an edge: it touches files and unix sockets. It does not read or write the
// connection.
//
// Traps: the kubelet mounts volumes in memory over their folders, so mounts are
// crossed on purpose, and the process must see the kubelet's mounts (mount
// propagation HostToContainer). Without CAP_DAC_OVERRIDE the connection needs
// write permission on the socket, so a launcher makes its socket writable for
// all; only root and the pod can enter the folders above.
package socket
