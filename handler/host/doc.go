// Package host does what a handler does for its node as a whole, besides its VMIs. It
// offers devices to pods. It keeps the labels and annotations of the node that say whether
// and which VMIs can run there.
//
// [Node.Run] joins the core handler, which decides, with the edges internal/handler/device
// and internal/handler/node. It does nothing while KubeVirt itself is installed. The
// package is a controller. handler/controller, which looks after the VMIs, does not need
// it.
//
// Trap: a Node needs the folders of the kubelet and of the container runtime, which only
// root of the node may write to.
package host
