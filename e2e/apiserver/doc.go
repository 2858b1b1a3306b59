// Package apiserver tests what needs a real API server and no node: the
// controller, the roles and the policies, against kube-apiserver and etcd with
// the project's own manifests applied.
//
// The tests play the kubelet, the scheduler and the handler. Each has a namespace
// in which pods must be restricted, and a controller that sees only that
// namespace and may do only what virt-controller's role allows.
package apiserver
